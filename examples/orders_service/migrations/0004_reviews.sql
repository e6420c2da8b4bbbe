CREATE TABLE reviews (
    product bigint NOT NULL REFERENCES products (id),
    customer bigint NOT NULL REFERENCES customers (id),
    stars smallint NOT NULL CHECK (stars BETWEEN 1 AND 5),
    PRIMARY KEY (product, customer));

ALTER TABLE customers ADD COLUMN newsletter boolean DEFAULT true;

ALTER TABLE reviews ADD COLUMN body text;
