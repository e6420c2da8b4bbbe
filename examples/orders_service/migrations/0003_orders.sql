CREATE TABLE coupons (
    code text PRIMARY KEY,
    percent integer NOT NULL CHECK (percent BETWEEN 1 AND 50),
    uses_left integer NOT NULL CHECK (uses_left >= 0));

CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer bigint NOT NULL REFERENCES customers (id),
    placed timestamp NOT NULL,
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paid', 'shipped', 'cancelled')),
    coupon text REFERENCES coupons (code));

CREATE INDEX orders_customer ON orders (customer, placed);

CREATE TABLE order_lines (
    order_id bigint NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
    line integer NOT NULL,
    product bigint NOT NULL REFERENCES products (id),
    warehouse integer NOT NULL REFERENCES warehouses (id),
    quantity integer NOT NULL CHECK (quantity > 0),
    price numeric(10, 2) NOT NULL,
    amount numeric(12, 2) GENERATED ALWAYS AS (quantity * price) STORED,
    PRIMARY KEY (order_id, line));

CREATE TABLE payments (
    order_id bigint PRIMARY KEY REFERENCES orders (id),
    amount numeric(12, 2) NOT NULL CHECK (amount >= 0),
    method text NOT NULL,
    paid timestamp NOT NULL);

CREATE TABLE shipments (
    order_id bigint PRIMARY KEY REFERENCES orders (id),
    city text NOT NULL,
    shipped timestamp NOT NULL);

CREATE VIEW order_lines_total AS
    SELECT order_id, sum(amount) AS total FROM order_lines GROUP BY order_id;
