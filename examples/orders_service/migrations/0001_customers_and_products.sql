CREATE TABLE customers (
    id bigint PRIMARY KEY,
    email varchar(120) NOT NULL UNIQUE,
    name text NOT NULL CHECK (length(name) > 0),
    joined date NOT NULL DEFAULT DATE '2026-01-01',
    vip boolean NOT NULL DEFAULT false);

CREATE TABLE addresses (
    customer bigint NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    number integer NOT NULL,
    city text NOT NULL,
    country character(2) NOT NULL,
    PRIMARY KEY (customer, number));

CREATE TABLE categories (
    id integer PRIMARY KEY,
    parent integer REFERENCES categories (id),
    name text NOT NULL);

CREATE TABLE products (
    id bigint PRIMARY KEY,
    category integer NOT NULL REFERENCES categories (id),
    name text NOT NULL,
    price numeric(10, 2) NOT NULL CHECK (price > 0),
    discontinued boolean NOT NULL DEFAULT false);

CREATE INDEX products_category ON products (category);
