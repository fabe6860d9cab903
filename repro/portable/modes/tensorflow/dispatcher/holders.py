"""Operations of TensorFlow that hold tensors or hand them on, by name: none computes a number that a program goes on with.

What is not here, because a newer version brings it, is refused as soon as fractions may be in it.
"""

DATASETS = """
    AnonymousIterator AnonymousIteratorV2 AnonymousIteratorV3 AnonymousMemoryCache AnonymousMultiDeviceIterator
    AnonymousMultiDeviceIteratorV3 AnonymousRandomSeedGenerator AnonymousSeedGenerator AssertCardinalityDataset
    AssertNextDataset AssertPrevDataset AutoShardDataset BatchDataset BatchDatasetV2 BytesProducedStatsDataset
    CSVDataset CSVDatasetV2 CacheDataset CacheDatasetV2 ChooseFastestBranchDataset ChooseFastestDataset
    ComputeBatchSize ConcatenateDataset DataServiceDataset DataServiceDatasetV2 DataServiceDatasetV3
    DataServiceDatasetV4 DatasetCardinality DatasetFingerprint DatasetFromGraph DatasetToGraph DatasetToGraphV2
    DatasetToSingleElement DatasetToTFRecord DeleteIterator DeleteMemoryCache DeleteMultiDeviceIterator
    DeleteRandomSeedGenerator DeleteSeedGenerator DenseToSparseBatchDataset DeserializeIterator
    DirectedInterleaveDataset DistributedSave DummyIterationCounter DummyMemoryCache DummySeedGenerator
    ExperimentalAssertNextDataset ExperimentalAutoShardDataset ExperimentalBytesProducedStatsDataset
    ExperimentalCSVDataset ExperimentalChooseFastestDataset ExperimentalDatasetCardinality
    ExperimentalDatasetToTFRecord ExperimentalDenseToSparseBatchDataset ExperimentalDirectedInterleaveDataset
    ExperimentalGroupByReducerDataset ExperimentalGroupByWindowDataset ExperimentalIgnoreErrorsDataset
    ExperimentalIteratorGetDevice ExperimentalLMDBDataset ExperimentalLatencyStatsDataset
    ExperimentalMapAndBatchDataset ExperimentalMapDataset ExperimentalMatchingFilesDataset
    ExperimentalMaxIntraOpParallelismDataset ExperimentalNonSerializableDataset
    ExperimentalParallelInterleaveDataset ExperimentalParseExampleDataset ExperimentalPrivateThreadPoolDataset
    ExperimentalRandomDataset ExperimentalRebatchDataset ExperimentalScanDataset
    ExperimentalSetStatsAggregatorDataset ExperimentalSleepDataset ExperimentalSlidingWindowDataset
    ExperimentalSqlDataset ExperimentalTakeWhileDataset ExperimentalThreadPoolDataset ExperimentalThreadPoolHandle
    ExperimentalUnbatchDataset ExperimentalUniqueDataset FilterByLastComponentDataset FilterDataset FinalizeDataset
    FixedLengthRecordDataset FixedLengthRecordDatasetV2 FlatMapDataset GeneratorDataset GetOptions
    GlobalShuffleDataset GroupByReducerDataset GroupByWindowDataset IgnoreErrorsDataset IndexFlatMapDataset
    InitializeTableFromDataset InterleaveDataset Iterator IteratorFromStringHandle IteratorFromStringHandleV2
    IteratorGetDevice IteratorGetModelProto IteratorGetNext IteratorGetNextAsOptional IteratorGetNextSync
    IteratorToStringHandle IteratorV2 LMDBDataset LatencyStatsDataset LegacyParallelInterleaveDatasetV2 ListDataset
    ListSnapshotChunksDataset LoadDataset MakeIterator MapAndBatchDataset MapDataset MatchingFilesDataset
    MaxIntraOpParallelismDataset ModelDataset MultiDeviceIterator MultiDeviceIteratorFromStringHandle
    MultiDeviceIteratorGetNextFromShard MultiDeviceIteratorInit MultiDeviceIteratorToStringHandle
    NonSerializableDataset OneShotIterator OptimizeDataset OptimizeDatasetV2 OptionalFromValue OptionalGetValue
    OptionalHasValue OptionalNone OptionsDataset PaddedBatchDataset PaddedBatchDatasetV2 ParallelBatchDataset
    ParallelFilterDataset ParallelInterleaveDataset ParallelInterleaveDatasetV2 ParallelInterleaveDatasetV3
    ParallelInterleaveDatasetV4 ParallelMapDataset ParallelMapDatasetV2 ParseExampleDataset ParseExampleDatasetV2
    PrefetchDataset PrivateThreadPoolDataset RandomDataset RandomDatasetV2 RangeDataset RebatchDataset
    RebatchDatasetV2 ReduceDataset RegisterDataset RegisterDatasetV2 RepeatDataset RewriteDataset SamplingDataset
    SaveDataset SaveDatasetV2 ScanDataset SerializeIterator SetStatsAggregatorDataset ShardDataset
    ShuffleAndRepeatDataset ShuffleAndRepeatDatasetV2 ShuffleDataset ShuffleDatasetV2 ShuffleDatasetV3 SkipDataset
    SleepDataset SlidingWindowDataset SnapshotChunkDataset SnapshotDataset SnapshotDatasetReader SnapshotDatasetV2
    SnapshotNestedDatasetReader SparseTensorSliceDataset SqlDataset TFRecordDataset TFRecordDatasetV2 TakeDataset
    TakeWhileDataset TensorDataset TensorSliceDataset TextLineDataset ThreadPoolDataset ThreadPoolHandle
    UnbatchDataset UniqueDataset UnwrapDatasetVariant WeightedFlatMapDataset WindowDataset WrapDatasetVariant
    ZipDataset
"""
"""Datasets and their iterators, which call functions whose own operations are replaced when they are made."""

LISTS = """
    EmptyTensorList EmptyTensorMap TensorArray TensorArrayClose TensorArrayCloseV2 TensorArrayCloseV3
    TensorArrayConcat TensorArrayConcatV2 TensorArrayConcatV3 TensorArrayGather TensorArrayGatherV2
    TensorArrayGatherV3 TensorArrayGrad TensorArrayGradV2 TensorArrayGradV3 TensorArrayGradWithShape TensorArrayPack
    TensorArrayRead TensorArrayReadV2 TensorArrayReadV3 TensorArrayScatter TensorArrayScatterV2 TensorArrayScatterV3
    TensorArraySize TensorArraySizeV2 TensorArraySizeV3 TensorArraySplit TensorArraySplitV2 TensorArraySplitV3
    TensorArrayUnpack TensorArrayV2 TensorArrayV3 TensorArrayWrite TensorArrayWriteV2 TensorArrayWriteV3
    TensorListConcat TensorListConcatLists TensorListConcatV2 TensorListElementShape TensorListFromTensor
    TensorListGather TensorListGetItem TensorListLength TensorListPopBack TensorListPushBack TensorListPushBackBatch
    TensorListReserve TensorListResize TensorListScatter TensorListScatterIntoExistingList TensorListScatterV2
    TensorListSetItem TensorListSplit TensorListStack TensorMapErase TensorMapHasKey TensorMapInsert TensorMapLookup
    TensorMapSize TensorMapStackKeys
"""
"""Lists, arrays and maps of tensors."""

CONTAINERS = """
    AnonymousHashTable AnonymousMutableDenseHashTable AnonymousMutableHashTable AnonymousMutableHashTableOfTensors
    Barrier BarrierClose BarrierIncompleteSize BarrierInsertMany BarrierReadySize BarrierTakeMany
    CompositeTensorVariantFromComponents CompositeTensorVariantToComponents ConsumeMutexLock DisableCopyOnRead
    FIFOQueue FIFOQueueV2 FakeQueue HashTable HashTableV2 InitializeTable InitializeTableFromTextFile
    InitializeTableFromTextFileV2 InitializeTableV2 IsResourceHandleRefCounting LookupTableExport
    LookupTableExportV2 LookupTableFind LookupTableFindV2 LookupTableImport LookupTableImportV2 LookupTableInsert
    LookupTableInsertV2 LookupTableRemoveV2 LookupTableSize LookupTableSizeV2 MakeWeakResourceHandle MapClear
    MapIncompleteSize MapPeek MapSize MapStage MapUnstage MapUnstageNoKey MutableDenseHashTable
    MutableDenseHashTableV2 MutableHashTable MutableHashTableOfTensors MutableHashTableOfTensorsV2
    MutableHashTableV2 MutexLock MutexV2 OrderedMapClear OrderedMapIncompleteSize OrderedMapPeek OrderedMapSize
    OrderedMapStage OrderedMapUnstage OrderedMapUnstageNoKey PaddingFIFOQueue PaddingFIFOQueueV2 PriorityQueue
    PriorityQueueV2 QueueClose QueueCloseV2 QueueDequeue QueueDequeueMany QueueDequeueManyV2 QueueDequeueUpTo
    QueueDequeueUpToV2 QueueDequeueV2 QueueEnqueue QueueEnqueueMany QueueEnqueueManyV2 QueueEnqueueV2 QueueIsClosed
    QueueIsClosedV2 QueueSize QueueSizeV2 RandomShuffleQueue RandomShuffleQueueV2 ResourceCountUpTo Stack StackClose
    StackCloseV2 StackPop StackPopV2 StackPush StackPushV2 StackV2 Stage StageClear StagePeek StageSize
    StubResourceHandleOp Unstage XlaOptimizationBarrier
"""
"""Tables, queues and stacks of tensors, locks."""

FILES = """
    CloseSummaryWriter CollectiveAllToAllV2 CollectiveAllToAllV3 CollectiveAssignGroupV2 CollectiveBcastRecv
    CollectiveBcastRecvV2 CollectiveBcastSend CollectiveBcastSendV2 CollectiveGather CollectiveGatherV2
    CollectiveInitializeCommunicator CollectivePermute CreateSummaryDbWriter CreateSummaryFileWriter
    DebugNumericSummaryV2 DeviceIndex ExperimentalStatsAggregatorHandle ExperimentalStatsAggregatorSummary
    FixedLengthRecordReader FixedLengthRecordReaderV2 FlushSummaryWriter HistogramSummary IdentityReader
    IdentityReaderV2 ImportEvent LMDBReader MergeSummary ReadFile ReadVariableXlaSplitND ReaderNumRecordsProduced
    ReaderNumRecordsProducedV2 ReaderNumWorkUnitsCompleted ReaderNumWorkUnitsCompletedV2 ReaderRead ReaderReadUpTo
    ReaderReadUpToV2 ReaderReadV2 ReaderReset ReaderResetV2 ReaderRestoreState ReaderRestoreStateV2
    ReaderSerializeState ReaderSerializeStateV2 Restore RestoreSlice RestoreV2 Save SaveSlices SaveV2 ScalarSummary
    ShardedFilename StatsAggregatorHandle StatsAggregatorHandleV2 StatsAggregatorSetSummaryWriter
    StatsAggregatorSummary SummaryWriter TFRecordReader TFRecordReaderV2 TensorSummary TensorSummaryV2
    TextLineReader TextLineReaderV2 WholeFileReader WholeFileReaderV2 WriteFile WriteGraphSummary
    WriteHistogramSummary WriteRawProtoSummary WriteScalarSummary WriteSummary
"""
"""What reads, writes, and sends to other devices."""

STRINGS = """
    AsString DecodeAndCropJpeg DecodeBase64 DecodeBmp DecodeCSV DecodeCompressed DecodeGif DecodeImage
    DecodeJSONExample DecodeJpeg DecodePaddedRaw DecodePng DecodeProtoV2 DecodeRaw DecodeWav DecodeWebP
    DeserializeManySparse DeserializeSparse EncodeBase64 EncodeJpeg EncodeJpegVariableQuality EncodePng EncodeProto
    ParseExample ParseExampleV2 ParseSequenceExample ParseSequenceExampleV2 ParseSingleExample
    ParseSingleSequenceExample ParseTensor RaggedGather RaggedTensorFromVariant RaggedTensorToSparse
    RaggedTensorToTensor RaggedTensorToVariant RegexFullMatch RegexReplace SerializeManySparse SerializeSparse
    SerializeTensor StringFormat StringJoin StringLength StringLower StringNGrams StringSplit StringSplitV2
    StringStrip StringToHashBucket StringToHashBucketFast StringToHashBucketStrong StringToNumber StringUpper
    UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeScript UnicodeTranscode
"""
"""Strings, images and records as TensorFlow encodes them, and ragged tensors."""

HOLDERS = frozenset(" ".join((DATASETS, LISTS, CONTAINERS, FILES, STRINGS)).split())
