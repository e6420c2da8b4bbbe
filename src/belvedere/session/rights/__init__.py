"""Who a session is, and what that role may do.

In reading order; an entry uses only those before it:

    identity         the role of a session: who logged in, SET SESSION AUTHORIZATION, SET ROLE
    denials          the errors of what a role may not do
    data_rights      rights on relations, columns, schemas and sequences that a plan needs
    role_rules       what may be done to roles: CREATEROLE, ADMIN
    statement_rules  the rights that each kind of statement needs
    check_rights     the check of a bound statement
"""
