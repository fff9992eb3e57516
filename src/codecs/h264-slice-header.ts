import { BitReader, BitstreamError } from './bits.ts';
import type { H264Pps } from './h264-pps.ts';
import { SLICE } from './h264-slice.ts';
import type { H264Sps } from './h264-sps.ts';
import { escapedLength, unescapeNal } from './nal.ts';

/** Fields of a PPS that decide how long slice headers are. */
export interface H264SliceTools extends H264Pps {
  readonly cabac: boolean;
  readonly bottomFieldOrder: boolean;
  /** Default number of references of each list. */
  readonly references: readonly [l0: number, l1: number];
  readonly weightedP: boolean;
  readonly weightedB: boolean;
  readonly deblockingControl: boolean;
  readonly redundantPictures: boolean;
}

const NAL_HEADER_BYTES = 1;
const PPS = 8;
const MAX_PPS = 255;
const MAX_SPS = 31;
const IDR = 5;
/** Reference lists, weights and marking of 32 pictures take some hundred bytes. */
const MAX_HEADER_BYTES = 1024;
const MAX_REFERENCES = 32;

/** Reads those fields of a PPS with its NAL header (H.264 7.3.2.2). @throws BitstreamError when malformed, or with slice groups */
export function parseSliceTools(pps: Buffer): H264SliceTools {
  if (((pps[0] ?? 0) & 0x1f) !== PPS) throw new BitstreamError('not an H.264 PPS');
  const reader = new BitReader(unescapeNal(pps).subarray(NAL_HEADER_BYTES));
  const id = reader.ueMax(MAX_PPS, 'pic_parameter_set_id');
  const sps = reader.ueMax(MAX_SPS, 'seq_parameter_set_id');
  const cabac = reader.flag();
  const bottomFieldOrder = reader.flag();
  if (reader.ue() > 0) throw new BitstreamError('slice groups of H.264');
  const references = [readCount(reader), readCount(reader)] as const;
  const weightedP = reader.flag();
  const weightedB = reader.read(2) === 1;
  for (let i = 0; i < 3; i++) reader.se();
  const deblockingControl = reader.flag();
  reader.skip(1);
  return {
    ...{ id, sps, cabac, bottomFieldOrder, references, weightedP, weightedB, deblockingControl },
    redundantPictures: reader.flag(),
  };
}

/**
 * Bytes of a slice with its NAL header up to the first one that has only slice data (H.264 7.3.3).
 * @param sps the SPS of the slice's PPS
 * @param tools of the slice's PPS
 * @throws BitstreamError when malformed
 */
export function sliceHeaderBytes(nal: Buffer, sps: H264Sps, tools: H264SliceTools): number {
  const head = nal.subarray(0, MAX_HEADER_BYTES);
  const reader = new BitReader(unescapeNal(head).subarray(NAL_HEADER_BYTES));
  skipHeader(reader, nal[0] as number, sps, tools);
  return escapedLength(head, NAL_HEADER_BYTES + Math.ceil(reader.position / 8));
}

function skipHeader(reader: BitReader, nalHeader: number, sps: H264Sps, tools: H264SliceTools): void {
  const isIdr = (nalHeader & 0x1f) === IDR;
  reader.ue();
  const type = reader.ueMax(9, 'slice_type') % 5;
  const isB = type === SLICE.b;
  const isPredicted = type === SLICE.p || type === SLICE.sp;
  reader.ue();
  if (sps.separatePlanes) reader.skip(2);
  reader.skip(sps.frameNumBits);
  const isField = sps.interlaced && reader.flag();
  if (isField) reader.skip(1);
  if (isIdr) reader.ue();
  skipPicOrder(reader, sps, tools.bottomFieldOrder && !isField);
  if (tools.redundantPictures) reader.ue();
  if (isB) reader.skip(1);
  const lists = isB ? 2 : isPredicted ? 1 : 0;
  let counts: readonly number[] = tools.references.slice(0, lists);
  if (lists > 0 && reader.flag()) counts = counts.map(() => readCount(reader));
  for (let list = 0; list < lists; list++) skipModification(reader);
  if ((tools.weightedP && isPredicted) || (tools.weightedB && isB)) skipWeights(reader, sps, counts);
  if ((nalHeader & 0x60) !== 0) skipMarking(reader, isIdr);
  if (tools.cabac && lists > 0) reader.ue();
  reader.se();
  if (type === SLICE.sp) reader.skip(1);
  if (type === SLICE.sp || type === SLICE.si) reader.se();
  // disable_deblocking_filter_idc
  if (tools.deblockingControl && reader.ue() !== 1) {
    reader.se();
    reader.se();
  }
}

function readCount(reader: BitReader): number {
  return reader.ueMax(MAX_REFERENCES - 1, 'a number of references') + 1;
}

function skipPicOrder(reader: BitReader, { pocLsbBits, pocDeltas }: H264Sps, hasBottom: boolean): void {
  reader.skip(pocLsbBits);
  if (pocDeltas) reader.se();
  if ((pocLsbBits > 0 || pocDeltas) && hasBottom) reader.se();
}

/** ref_pic_list_modification() of one list (7.3.3.1). */
function skipModification(reader: BitReader): void {
  if (!reader.flag()) return;
  for (let count = 0; reader.ueMax(3, 'modification_of_pic_nums_idc') !== 3; count++) {
    if (count > MAX_REFERENCES) throw new BitstreamError('too many modifications of references');
    reader.ue();
  }
}

/** pred_weight_table() (7.3.3.2). */
function skipWeights(reader: BitReader, sps: H264Sps, counts: readonly number[]): void {
  const hasChroma = sps.chromaFormat !== 0 && !sps.separatePlanes;
  reader.ue();
  if (hasChroma) reader.ue();
  for (const count of counts) {
    for (let index = 0; index < count; index++) {
      if (reader.flag()) for (let i = 0; i < 2; i++) reader.se();
      if (hasChroma && reader.flag()) for (let i = 0; i < 4; i++) reader.se();
    }
  }
}

/** dec_ref_pic_marking() (7.3.3.3). */
function skipMarking(reader: BitReader, isIdr: boolean): void {
  if (isIdr) return reader.skip(2);
  if (!reader.flag()) return;
  for (let count = 0; ; count++) {
    const operation = reader.ueMax(6, 'memory_management_control_operation');
    if (operation === 0) return;
    if (count > 2 * MAX_REFERENCES) throw new BitstreamError('too many operations on references');
    if (operation !== 5) reader.ue();
    if (operation === 3) reader.ue();
  }
}
