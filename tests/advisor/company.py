"""The Company example of the Synergy paper, reconstructed from its prose: the figures are lost.

Given by the prose: the seven relations, the roots Address and Department, the first two queries,
the foreign keys EHome_AID, EOffice_AID, E_DNo and WO_EID, and that the edge (AID, EOffice_AID) is
removed on the way to the DAG.

Reconstructed: all other columns; the foreign keys of Department_Location, Project and Dependent,
and of Works_On to Project; the third query, chosen so that Employee belongs to Address without a
tie; therefore also the rooted trees.
"""

from __future__ import annotations

SCHEMA = """
CREATE TABLE Address (AID int PRIMARY KEY, Street text, City text, Zip text);
CREATE TABLE Department (DNo int PRIMARY KEY, DName text);
CREATE TABLE Department_Location (
    DLNo int PRIMARY KEY, DL_DNo int NOT NULL REFERENCES Department, DLCity text);
CREATE TABLE Employee (
    EID int PRIMARY KEY, EName text,
    EHome_AID int NOT NULL REFERENCES Address,
    EOffice_AID int NOT NULL REFERENCES Address,
    E_DNo int NOT NULL REFERENCES Department);
CREATE TABLE Project (
    PNo int PRIMARY KEY, PName text, P_DNo int NOT NULL REFERENCES Department);
CREATE TABLE Works_On (
    WO_EID int NOT NULL REFERENCES Employee, WO_PNo int NOT NULL REFERENCES Project, Hours int,
    PRIMARY KEY (WO_EID, WO_PNo));
CREATE TABLE Dependent (
    DPName text, DP_EID int NOT NULL REFERENCES Employee, DPBirth date,
    PRIMARY KEY (DP_EID, DPName));
"""

WORKLOAD = """
-- name: W1
SELECT * FROM Employee AS e, Address AS a WHERE a.AID = e.EHome_AID AND e.EID = ?;
-- name: W2
SELECT * FROM Department AS d, Employee AS e, Works_On AS wo
WHERE d.DNo = e.E_DNo AND e.EID = wo.WO_EID;
-- name: W3
SELECT * FROM Address AS a, Employee AS e, Dependent AS dp
WHERE a.AID = e.EHome_AID AND e.EID = dp.DP_EID AND a.City = ?;
"""

ROOTS = ("address", "department")
