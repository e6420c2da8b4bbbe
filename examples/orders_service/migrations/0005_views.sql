CREATE MATERIALIZED VIEW order_totals AS
    SELECT o.id, o.customer, o.status, count(*) AS lines, sum(l.amount) AS total
    FROM orders o JOIN order_lines l ON l.order_id = o.id
    GROUP BY o.id, o.customer, o.status;

CREATE MATERIALIZED VIEW customer_spending AS
    SELECT c.id, c.name, count(*) AS payments, sum(p.amount) AS spent
    FROM customers c
        JOIN orders o ON o.customer = c.id
        JOIN payments p ON p.order_id = o.id
    GROUP BY c.id, c.name;

CREATE MATERIALIZED VIEW product_rating AS
    SELECT p.id, p.name, count(r.stars) AS reviews, avg(r.stars) AS stars
    FROM products p LEFT JOIN reviews r ON r.product = p.id
    GROUP BY p.id, p.name;

CREATE MATERIALIZED VIEW stock_by_product AS
    SELECT product, sum(quantity) AS quantity, min(quantity) AS lowest
    FROM stock GROUP BY product;

CREATE MATERIALIZED VIEW revenue_by_category AS
    SELECT k.name AS category, w.city, count(*) AS lines, sum(l.amount) AS revenue
    FROM order_lines l
        JOIN orders o ON o.id = l.order_id AND o.status <> 'cancelled'
        JOIN products p ON p.id = l.product
        JOIN categories k ON k.id = p.category
        JOIN warehouses w ON w.id = l.warehouse
    GROUP BY k.name, w.city;

CREATE MATERIALIZED VIEW never_reviewed AS
    SELECT p.id, p.name FROM products p
    WHERE NOT EXISTS (SELECT 1 FROM reviews r WHERE r.product = p.id);

CREATE MATERIALIZED VIEW best_customers AS
    SELECT id, name, spent FROM customer_spending ORDER BY spent DESC, id LIMIT 5;
