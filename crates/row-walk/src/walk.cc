// Walks the rows of a column family that a snapshot shows, in order, below RocksDB's public iterator.
//
// The public iterator is made for everything that a database can hold. The rows of this one are plain values and deletions:
// no merges, no blobs, no wide columns, no timestamps of users. Ranges of keys are deleted only when a table is dropped, and
// then no scan of that table gives an answer. So a walk reads the internal iterator, which has every version of every key,
// newest first, and picks the newest version that the snapshot shows. Where one memtable, one file, or one level of files has all
// rows of the range, that iterator is the iterator of this memtable, file or level, with no merging in between.
//
// Everything here may be called by one thread at a time. A walk must end before its database is closed. What C++ throws, for
// lack of memory, ends the process: nothing may be thrown through Rust.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/dbformat.h"
#include "db/memtable_list.h"
#include "db/version_set.h"
#include "memory/arena.h"
#include "monitoring/statistics_impl.h"
#include "rocksdb/options.h"
#include "table/internal_iterator.h"
#include "table/merging_iterator.h"

using namespace ROCKSDB_NAMESPACE;

namespace {

// After so many versions of one row, its last version is sought instead of stepped to.
constexpr uint64_t kStepsMax = 8;

// How much of the next row is fetched from memory while its reader looks at this one: its key, and where its properties are;
// or all of it, if it is as long as this one, with its key.
constexpr size_t kFrontBytes = 256;
constexpr size_t kKeyBytes = 128;
constexpr size_t kAheadBytesMax = 1536;
constexpr size_t kCacheLine = 64;

}  // namespace

extern "C" {

// As RocksDB's C interface has it.
struct rocksdb_column_family_handle_t {
  ColumnFamilyHandle* rep;
};

struct partita_row {
  const char* key;
  size_t key_length;
  const char* value;
  size_t value_length;
};

struct partita_walk {
  std::string start;
  std::string end;
  Slice upper_bound;
  ReadOptions options;
  Arena arena;
  DBImpl* db = nullptr;
  // The memtables and files that the walk reads. They are kept until it ends.
  SuperVersion* sources = nullptr;
  InternalIterator* rows = nullptr;
  SequenceNumber newest = 0;
  // The row whose older versions have to be skipped; nothing if there can be none.
  std::string done;
  bool has_done = false;
  // The row whose versions are newer than the snapshot, and how many of its versions, or of the row before, were skipped.
  std::string hidden;
  uint64_t steps = 0;
  bool is_at_row = false;
  uint64_t skipped = 0;
  // Whether the reader copies rows as a whole.
  bool reads_whole_rows = false;
  Statistics* statistics = nullptr;
  Status status;

  ~partita_walk() {
    if (rows != nullptr) {
      // Its memory is the arena's.
      rows->~InternalIteratorBase<Slice>();
    }
    if (sources != nullptr) {
      db->CleanupIteratorSuperVersion(sources, /*background_purge=*/true);
    }
    RecordTick(statistics, NUMBER_ITER_SKIP, skipped);
  }
};

}  // extern "C"

namespace {

// The rows of the memtables, levels and files that have some from `first` up to the end of the walk.
//
// RocksDB's own choice takes in every memtable that has rows on both sides of the range or deleted ranges. That is mostly each of
// them, although few ranges have new rows. So a memtable is asked for its first row of the range.
InternalIterator* rows_of(partita_walk* walk, ColumnFamilyData* data, const Slice& first) {
  MergeIteratorBuilder merged(&data->internal_comparator(), &walk->arena, /*prefix_seek_mode=*/false, &walk->upper_bound);
  SuperVersion* sources = walk->sources;
  std::vector<InternalIterator*> memtables;
  memtables.push_back(sources->mem->NewIterator(walk->options, sources->GetSeqnoToTimeMapping(), &walk->arena,
                                                /*prefix_extractor=*/nullptr, /*for_flush=*/false));
  sources->imm->AddIterators(walk->options, sources->GetSeqnoToTimeMapping(), /*prefix_extractor=*/nullptr, &memtables,
                             &walk->arena);
  for (InternalIterator* memtable : memtables) {
    memtable->Seek(first);
    const bool has_rows = memtable->Valid() && ExtractUserKey(memtable->key()).compare(walk->upper_bound) < 0;
    // One that can't be read tells why when the walk comes to it.
    if (has_rows || !memtable->status().ok()) {
      merged.AddIterator(memtable);
    } else {
      // Its memory is the arena's.
      memtable->~InternalIteratorBase<Slice>();
    }
  }
  // Only tells which levels and files have rows of the range. Nothing is read ahead by it.
  MultiScanArgs range(data->user_comparator());
  range.insert(walk->start, walk->end);
  sources->current->AddIterators(walk->options, *data->soptions(), &merged, /*allow_unprepared_value=*/false, walk->newest, &range);
  InternalIterator* rows = merged.Finish();
  return rows != nullptr ? rows : NewEmptyInternalIterator<Slice>(&walk->arena);
}

}  // namespace

extern "C" {

// `newest` is the sequence number of a snapshot that lives as long as the walk.
partita_walk* partita_walk_open(rocksdb_column_family_handle_t* family, uint64_t newest, const char* start,
                                size_t start_length, const char* end, size_t end_length,
                                unsigned char reads_whole_rows) noexcept {
  auto* walk = new partita_walk();
  walk->reads_whole_rows = reads_whole_rows != 0;
  auto* handle = static_cast<ColumnFamilyHandleImpl*>(family->rep);
  DBImpl* db = handle->db();
  ColumnFamilyData* data = handle->cfd();
  walk->start.assign(start, start_length);
  walk->end.assign(end, end_length);
  walk->upper_bound = walk->end;
  walk->newest = newest;
  walk->statistics = data->ioptions().stats;
  walk->options.iterate_upper_bound = &walk->upper_bound;
  walk->options.ignore_range_deletions = true;
  walk->options.total_order_seek = true;
  if (Slice(walk->start).compare(walk->end) >= 0) {
    walk->rows = NewEmptyInternalIterator<Slice>(&walk->arena);
    return walk;
  }
  InternalKey first;
  first.Set(walk->start, newest, kValueTypeForSeek);
  walk->db = db;
  walk->sources = data->GetReferencedSuperVersion(db);
  walk->rows = rows_of(walk, data, first.Encode());
  walk->rows->Seek(first.Encode());
  return walk;
}

void partita_walk_close(partita_walk* walk) noexcept { delete walk; }

// The next row, which lies where it is told until the walk goes on or ends. 0 after the last one, and where reading fails.
unsigned char partita_walk_next(partita_walk* walk, partita_row* row) noexcept {
  InternalIterator* rows = walk->rows;
  IterateResult step;
  bool is_valid;
  if (walk->is_at_row) {
    walk->is_at_row = false;
    is_valid = rows->NextAndGetResult(&step);
  } else {
    is_valid = rows->Valid();
    if (is_valid) {
      step.key = rows->key();
      step.bound_check_result = IterBoundCheck::kUnknown;
    }
  }
  while (is_valid) {
    if (step.key.size() < kNumInternalBytes) {
      walk->status = Status::Corruption("a stored key is too short");
      return 0;
    }
    const Slice key(step.key.data(), step.key.size() - kNumInternalBytes);
    const uint64_t footer = ExtractInternalKeyFooter(step.key);
    const SequenceNumber sequence = footer >> 8;
    const auto type = static_cast<ValueType>(footer & 0xff);
    if (step.bound_check_result != IterBoundCheck::kInbound && key.compare(walk->upper_bound) >= 0) {
      return 0;
    }
    const bool is_hidden = sequence > walk->newest;
    const bool is_done = !is_hidden && walk->has_done && key == walk->done;
    if (!is_hidden && !is_done) {
      walk->steps = 0;
      // A row of sequence number 0 has no older versions.
      walk->has_done = sequence != 0;
      if (walk->has_done) {
        walk->done.assign(key.data(), key.size());
      }
      if (type == kTypeValue) {
        const Slice value = rows->value();
        *row = {key.data(), key.size(), value.data(), value.size()};
        walk->is_at_row = true;
        // In a block it lies directly behind this one. Behind the last one this fetches what nobody needs, and does no harm.
        const size_t wanted = walk->reads_whole_rows ? std::min(kKeyBytes + value.size(), kAheadBytesMax) : kFrontBytes;
        for (size_t ahead = 0; ahead < wanted; ahead += kCacheLine) {
          __builtin_prefetch(value.data() + value.size() + ahead);
        }
        return 1;
      }
      if (type != kTypeDeletion && type != kTypeSingleDeletion) {
        walk->status = Status::Corruption("a stored row has an unknown type", std::to_string(type));
        return 0;
      }
    } else if (is_hidden && key != walk->hidden) {
      walk->steps = 0;
      walk->hidden.assign(key.data(), key.size());
    }
    walk->skipped++;
    if (++walk->steps <= kStepsMax) {
      is_valid = rows->NextAndGetResult(&step);
      continue;
    }
    // To the first version that the snapshot shows, or behind the last one.
    walk->steps = 0;
    InternalKey target;
    target.Set(key, is_hidden ? walk->newest : 0, is_hidden ? kValueTypeForSeek : kTypeDeletion);
    rows->Seek(target.Encode());
    is_valid = rows->Valid();
    if (is_valid) {
      step.key = rows->key();
      step.bound_check_result = IterBoundCheck::kUnknown;
    }
  }
  walk->status = rows->status();
  return 0;
}

// What stopped the walk: 0 for nothing, 1 for damaged bytes, 2 for anything else. The text is the caller's to free.
int partita_walk_status(const partita_walk* walk, char** text) noexcept {
  const Status& status = walk->status.ok() ? walk->rows->status() : walk->status;
  if (status.ok()) {
    return 0;
  }
  *text = strdup(status.ToString().c_str());
  return status.IsCorruption() ? 1 : 2;
}

void partita_walk_free(char* text) noexcept { free(text); }

}  // extern "C"
