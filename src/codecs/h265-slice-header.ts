import { BitReader, BitstreamError } from './bits.ts';
import type { H265Pps } from './h265-pps.ts';
import { readRefPicSet } from './h265-ref-pics.ts';
import { bitsOf, skipScalingLists, type H265SliceSets } from './h265-sps.ts';
import { escapedLength, unescapeNal } from './nal.ts';

/** Fields of a PPS that decide how long slice headers are. */
export interface H265SliceTools extends H265Pps {
  readonly dependentSlices: boolean;
  readonly outputFlag: boolean;
  readonly extraBits: number;
  readonly cabacInit: boolean;
  /** Default number of references of each list. */
  readonly references: readonly [l0: number, l1: number];
  readonly chromaQpOffsets: boolean;
  readonly chromaQpLists: boolean;
  readonly weightedP: boolean;
  readonly weightedB: boolean;
  /** Whether headers have entry points: of tiles, or of rows. */
  readonly entryPoints: boolean;
  readonly filtersAcross: boolean;
  readonly deblockingOverride: boolean;
  readonly deblockingDisabled: boolean;
  readonly modifiesLists: boolean;
  readonly extension: boolean;
}

const NAL_HEADER_BYTES = 2;
const PPS = 34;
const MAX_PPS = 63;
const MAX_SPS = 15;
const FIRST_IRAP = 16;
const LAST_IRAP = 23;
const IDR = [19, 20];
const B = 0;
const P = 1;
/** References, weights and entry points of all rows of a picture take some kilobytes at most. */
const MAX_HEADER_BYTES = 4096;
const MAX_REFERENCES = 16;
const MAX_ENTRY_POINTS = 440 * 20;
const MAX_TILES = 22;

/** Reads those fields of a PPS with its NAL header (H.265 7.3.2.3). @throws BitstreamError when malformed, or with another extension than range */
export function parseSliceTools(pps: Buffer): H265SliceTools {
  if ((((pps[0] ?? 0) >> 1) & 0x3f) !== PPS) throw new BitstreamError('not an H.265 PPS');
  const reader = new BitReader(unescapeNal(pps).subarray(NAL_HEADER_BYTES));
  const id = reader.ueMax(MAX_PPS, 'pps_pic_parameter_set_id');
  const sps = reader.ueMax(MAX_SPS, 'pps_seq_parameter_set_id');
  const dependentSlices = reader.flag();
  const outputFlag = reader.flag();
  const extraBits = reader.read(3);
  reader.skip(1);
  const cabacInit = reader.flag();
  const references = [readCount(reader), readCount(reader)] as const;
  reader.se();
  reader.skip(1);
  const transformSkip = reader.flag();
  if (reader.flag()) reader.ue();
  reader.se();
  reader.se();
  const chromaQpOffsets = reader.flag();
  const weightedP = reader.flag();
  const weightedB = reader.flag();
  reader.skip(1);
  const tiles = reader.flag();
  const rows = reader.flag();
  if (tiles) skipTiles(reader);
  const filtersAcross = reader.flag();
  let deblockingOverride = false;
  let deblockingDisabled = false;
  if (reader.flag()) {
    deblockingOverride = reader.flag();
    deblockingDisabled = reader.flag();
    if (!deblockingDisabled) skipFilter(reader);
  }
  if (reader.flag()) skipScalingLists(reader);
  const modifiesLists = reader.flag();
  reader.ue();
  const extension = reader.flag();
  return {
    ...{
      id,
      sps,
      dependentSlices,
      outputFlag,
      extraBits,
      cabacInit,
      references,
      chromaQpOffsets,
      weightedP,
      weightedB,
    },
    ...{ filtersAcross, deblockingOverride, deblockingDisabled, modifiesLists, extension },
    entryPoints: tiles || rows,
    chromaQpLists: reader.flag() && readRangeExtension(reader, transformSkip),
  };
}

function skipTiles(reader: BitReader): void {
  const columns = reader.ueMax(MAX_TILES, 'num_tile_columns_minus1');
  const rows = reader.ueMax(MAX_TILES, 'num_tile_rows_minus1');
  if (!reader.flag()) for (let i = 0; i < columns + rows; i++) reader.ue();
  reader.skip(1);
}

/** Whether slices have cu_chroma_qp_offset_enabled_flag (7.3.2.3.2). */
function readRangeExtension(reader: BitReader, transformSkip: boolean): boolean {
  const isRange = reader.flag();
  if (reader.read(7) !== 0) throw new BitstreamError('an extension of H.265 that has other slice headers');
  if (!isRange) return false;
  if (transformSkip) reader.ue();
  reader.skip(1);
  return reader.flag();
}

/**
 * Bytes of a slice segment with its NAL header up to its data (H.265 7.3.6.1).
 * @param sets of the SPS of the slice's PPS
 * @param tools of the slice's PPS
 * @throws BitstreamError when malformed
 */
export function sliceHeaderBytes(nal: Buffer, sets: H265SliceSets, tools: H265SliceTools): number {
  const head = nal.subarray(0, MAX_HEADER_BYTES);
  const reader = new BitReader(unescapeNal(head).subarray(NAL_HEADER_BYTES));
  const type = ((nal[0] as number) >> 1) & 0x3f;
  const isFirst = reader.flag();
  if (type >= FIRST_IRAP && type <= LAST_IRAP) reader.skip(1);
  reader.ue();
  const isDependent = !isFirst && tools.dependentSlices && reader.flag();
  if (!isFirst) reader.skip(sets.addressBits);
  if (!isDependent) skipIndependent(reader, IDR.includes(type), sets, tools);
  if (tools.entryPoints) skipEntryPoints(reader);
  if (tools.extension) reader.skip(8 * reader.ueMax(256, 'slice_segment_header_extension_length'));
  // byte_alignment(): a bit of 1, then zeros
  return escapedLength(head, NAL_HEADER_BYTES + Math.floor(reader.position / 8) + 1);
}

function skipIndependent(reader: BitReader, isIdr: boolean, sets: H265SliceSets, tools: H265SliceTools): void {
  reader.skip(tools.extraBits);
  const type = reader.ueMax(2, 'slice_type');
  if (tools.outputFlag) reader.skip(1);
  if (sets.separatePlanes) reader.skip(2);
  let references = 0;
  let temporalMvp = false;
  if (!isIdr) {
    references = readReferences(reader, sets);
    temporalMvp = sets.temporalMvp && reader.flag();
  }
  const offsetsLuma = sets.adaptiveOffset && reader.flag();
  const offsetsChroma = sets.adaptiveOffset && sets.hasChroma && reader.flag();
  if (type === B || type === P) skipPrediction(reader, type, references, temporalMvp, sets, tools);
  reader.se();
  if (tools.chromaQpOffsets) skipFilter(reader);
  if (tools.chromaQpLists) reader.skip(1);
  let isDisabled = tools.deblockingDisabled;
  if (tools.deblockingOverride && reader.flag()) {
    isDisabled = reader.flag();
    if (!isDisabled) skipFilter(reader);
  }
  if (tools.filtersAcross && (offsetsLuma || offsetsChroma || !isDisabled)) reader.skip(1);
}

/** Skips the reference pictures of a slice. @returns NumPicTotalCurr (7-55) */
function readReferences(reader: BitReader, sets: H265SliceSets): number {
  const { pocLsbBits, refPicSets, longTerm } = sets;
  reader.skip(pocLsbBits);
  const ofSps = reader.flag() ? reader.read(bitsOf(refPicSets.length)) : undefined;
  const refs = ofSps === undefined ? readRefPicSet(reader, refPicSets, true) : refPicSets[ofSps];
  if (refs === undefined) throw new BitstreamError('a slice without its reference picture set');
  let current = refs.filter(({ used }) => used).length;
  if (longTerm === undefined) return current;
  const known = longTerm.length > 0 ? reader.ueMax(MAX_REFERENCES, 'num_long_term_sps') : 0;
  const count = known + reader.ueMax(MAX_REFERENCES, 'num_long_term_pics');
  for (let index = 0; index < count; index++) {
    if (index < known) current += longTerm[reader.read(bitsOf(longTerm.length))] === true ? 1 : 0;
    else {
      reader.skip(pocLsbBits);
      current += reader.read(1);
    }
    if (reader.flag()) reader.ue();
  }
  return current;
}

function skipPrediction(
  reader: BitReader,
  type: number,
  references: number,
  temporalMvp: boolean,
  sets: H265SliceSets,
  tools: H265SliceTools,
): void {
  const lists = type === B ? 2 : 1;
  let counts: readonly number[] = tools.references.slice(0, lists);
  if (reader.flag()) counts = counts.map(() => readCount(reader));
  if (tools.modifiesLists && references > 1)
    for (const count of counts) if (reader.flag()) reader.skip(count * bitsOf(references));
  if (type === B) reader.skip(1);
  if (tools.cabacInit) reader.skip(1);
  if (temporalMvp) {
    const list = type === B && !reader.flag() ? 1 : 0;
    if ((counts[list] as number) > 1) reader.ue();
  }
  if (type === B ? tools.weightedB : tools.weightedP) skipWeights(reader, sets.hasChroma, counts);
  reader.ue();
}

/** pred_weight_table() (7.3.6.3). */
function skipWeights(reader: BitReader, hasChroma: boolean, counts: readonly number[]): void {
  reader.ue();
  if (hasChroma) reader.se();
  for (const count of counts) {
    const luma = Array.from({ length: count }, () => reader.flag());
    const chroma = luma.map(() => hasChroma && reader.flag());
    for (let index = 0; index < count; index++) {
      const numbers = (luma[index] === true ? 2 : 0) + (chroma[index] === true ? 4 : 0);
      for (let i = 0; i < numbers; i++) reader.se();
    }
  }
}

function skipEntryPoints(reader: BitReader): void {
  const count = reader.ueMax(MAX_ENTRY_POINTS, 'num_entry_point_offsets');
  if (count > 0) reader.skip(count * (reader.ueMax(31, 'offset_len_minus1') + 1));
}

/** Two numbers: offsets of a filter, or of chroma. */
function skipFilter(reader: BitReader): void {
  reader.se();
  reader.se();
}

function readCount(reader: BitReader): number {
  return reader.ueMax(MAX_REFERENCES - 1, 'a number of references') + 1;
}
