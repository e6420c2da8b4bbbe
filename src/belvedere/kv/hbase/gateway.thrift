/* The part of HBase's Thrift2 service that the store uses. Field ids are those of HBase 2. */

struct TTimeRange {
  1: required i64 minStamp
  2: required i64 maxStamp
}

struct TColumn {
  1: required binary family
  2: optional binary qualifier
  3: optional i64 timestamp
}

struct TColumnValue {
  1: required binary family
  2: required binary qualifier
  3: required binary value
  4: optional i64 timestamp
}

struct TColumnIncrement {
  1: required binary family
  2: required binary qualifier
  3: optional i64 amount
}

struct TResult {
  1: optional binary row
  2: required list<TColumnValue> columnValues
}

struct TGet {
  1: required binary row
  2: optional list<TColumn> columns
  4: optional TTimeRange timeRange
  5: optional i32 maxVersions
}

struct TPut {
  1: required binary row
  2: required list<TColumnValue> columnValues
}

/* deleteType: 0 one version, 1 every version up to the timestamp */
struct TDelete {
  1: required binary row
  2: optional list<TColumn> columns
  4: optional i32 deleteType
}

struct TIncrement {
  1: required binary row
  2: required list<TColumnIncrement> columns
}

struct TScan {
  1: optional binary startRow
  2: optional binary stopRow
  3: optional list<TColumn> columns
  4: optional i32 caching
  5: optional i32 maxVersions
  6: optional TTimeRange timeRange
  7: optional binary filterString
  11: optional bool reversed
  15: optional i32 limit
}

union TMutation {
  1: TPut put
  2: TDelete deleteSingle
}

struct TRowMutations {
  1: required binary row
  2: required list<TMutation> mutations
}

struct THRegionInfo {
  1: required i64 regionId
  2: required binary tableName
  3: optional binary startKey
  4: optional binary endKey
}

struct TServerName {
  1: required string hostName
  2: optional i32 port
  3: optional i64 startCode
}

struct THRegionLocation {
  1: required TServerName serverName
  2: required THRegionInfo regionInfo
}

struct TTableName {
  1: optional binary ns
  2: required binary qualifier
}

struct TColumnFamilyDescriptor {
  1: required binary name
  3: optional map<string, string> configuration
  9: optional i32 keepDeletedCells
  10: optional i32 maxVersions
  13: optional i32 timeToLive
}

struct TTableDescriptor {
  1: required TTableName tableName
  2: optional list<TColumnFamilyDescriptor> columns
  3: optional map<binary, binary> attributes
}

struct TNamespaceDescriptor {
  1: required string name
  2: optional map<string, string> configuration
}

exception TIOError {
  1: optional string message
  2: optional bool canRetry
}

exception TIllegalArgument {
  1: optional string message
}

service THBaseService {
  TResult get(1: required binary table, 2: required TGet tget) throws (1: TIOError io)
  list<TResult> getMultiple(1: required binary table, 2: required list<TGet> tgets)
    throws (1: TIOError io)
  void put(1: required binary table, 2: required TPut tput) throws (1: TIOError io)
  void putMultiple(1: required binary table, 2: required list<TPut> tputs)
    throws (1: TIOError io)
  list<TDelete> deleteMultiple(1: required binary table, 2: required list<TDelete> tdeletes)
    throws (1: TIOError io)
  void mutateRow(1: required binary table, 2: required TRowMutations trowMutations)
    throws (1: TIOError io)
  /* compareOp: 2 equal */
  bool checkAndMutate(1: required binary table, 2: required binary row,
    3: required binary family, 4: required binary qualifier, 5: required i32 compareOp,
    6: binary value, 7: required TRowMutations rowMutations) throws (1: TIOError io)
  TResult increment(1: required binary table, 2: required TIncrement tincrement)
    throws (1: TIOError io)
  list<TResult> getScannerResults(1: required binary table, 2: required TScan tscan,
    3: i32 numRows) throws (1: TIOError io)
  list<THRegionLocation> getAllRegionLocations(1: required binary table)
    throws (1: TIOError io)

  TTableDescriptor getTableDescriptor(1: required TTableName table) throws (1: TIOError io)
  list<TTableName> getTableNamesByNamespace(1: required string name) throws (1: TIOError io)
  list<TTableName> getTableNamesByPattern(1: optional string regex,
    2: required bool includeSysTables) throws (1: TIOError io)
  void createTable(1: required TTableDescriptor desc, 2: optional list<binary> splitKeys)
    throws (1: TIOError io)
  void deleteTable(1: required TTableName tableName) throws (1: TIOError io)
  void disableTable(1: required TTableName tableName) throws (1: TIOError io)
  bool isTableAvailable(1: required TTableName tableName) throws (1: TIOError io)
  void createNamespace(1: required TNamespaceDescriptor namespaceDesc)
    throws (1: TIOError io)
  void deleteNamespace(1: required string name) throws (1: TIOError io)
  list<string> listNamespaces() throws (1: TIOError io)
}
