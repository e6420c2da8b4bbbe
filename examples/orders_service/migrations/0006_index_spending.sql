CREATE INDEX customer_spending_spent ON customer_spending (spent);

ALTER TABLE orders ADD COLUMN note varchar(200);

UPDATE orders SET note = 'before notes' WHERE note IS NULL;
