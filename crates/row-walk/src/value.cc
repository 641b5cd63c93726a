// Finds a value, or where it lies in a blob file, below RocksDB's public interface.
//
// The public get reads a value from a blob file, checks it, and copies it twice. Who knows where it lies can read it once, to
// where it is needed.

#include <cstring>
#include <string>

#include "db/blob/blob_index.h"
#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "rocksdb/options.h"

using namespace ROCKSDB_NAMESPACE;

extern "C" {

// As RocksDB's C interface has it.
struct rocksdb_column_family_handle_t {
  ColumnFamilyHandle* rep;
};

struct partita_place {
  uint64_t file;
  uint64_t offset;
  uint64_t length;
};

struct partita_value {
  PinnableSlice bytes;
};

enum partita_found : int {
  // Not there, or it can't be told without waiting, or it is not as this file expects it: the public interface says what it is.
  kElsewhere = 0,
  kInFile = 1,
  // The value is the caller's to free.
  kInMemory = 2,
};

// Reads nothing from the disk unless it may wait.
int partita_value_find(rocksdb_column_family_handle_t* family, const char* key, size_t key_length, unsigned char may_wait,
                       partita_place* place, partita_value** value, const char** bytes, size_t* length) noexcept {
  auto* handle = static_cast<ColumnFamilyHandleImpl*>(family->rep);
  ReadOptions options;
  options.read_tier = may_wait ? kReadAllTier : kBlockCacheTier;
  auto* found = new partita_value();
  bool is_blob_index = false;
  DBImpl::GetImplOptions wanted;
  wanted.column_family = handle;
  wanted.value = &found->bytes;
  wanted.is_blob_index = &is_blob_index;
  const Status status = handle->db()->GetImpl(options, Slice(key, key_length), wanted);
  if (!status.ok()) {
    delete found;
    return kElsewhere;
  }
  if (!is_blob_index) {
    *value = found;
    *bytes = found->bytes.data();
    *length = found->bytes.size();
    return kInMemory;
  }
  BlobIndex index;
  const Status decoded = index.DecodeFrom(found->bytes);
  const bool is_plain = decoded.ok() && !index.HasTTL() && !index.IsSameFile() && index.compression() == kNoCompression;
  if (is_plain) {
    *place = {index.file_number(), index.offset(), index.size()};
  }
  delete found;
  return is_plain ? kInFile : kElsewhere;
}

void partita_value_free(partita_value* value) noexcept { delete value; }

}  // extern "C"
