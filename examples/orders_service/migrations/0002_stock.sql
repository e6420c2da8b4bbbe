CREATE TABLE warehouses (
    id integer PRIMARY KEY,
    city text NOT NULL UNIQUE);

CREATE TABLE stock (
    product bigint NOT NULL REFERENCES products (id),
    warehouse integer NOT NULL REFERENCES warehouses (id),
    quantity integer NOT NULL CHECK (quantity >= 0),
    PRIMARY KEY (product, warehouse));

CREATE TABLE stock_moves (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product bigint NOT NULL,
    warehouse integer NOT NULL,
    change integer NOT NULL CHECK (change <> 0),
    reason text NOT NULL,
    FOREIGN KEY (product, warehouse) REFERENCES stock (product, warehouse));
