"""Who may do what: privileges of roles on objects, and how they are granted.

In reading order; an entry uses only those before it:

    privileges      the kinds of privileges, what objects have by default, access lists as text
    builtin_roles   roles that exist in every store
    role_rights     what one role may do under one catalog
    grant           GRANT and REVOKE as changes of a list of grants
    ownership       owners of new objects, and lists that follow an object to another id
"""
