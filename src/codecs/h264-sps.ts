import { BitReader, BitstreamError, tolerant } from './bits.ts';
import { unescapeNal } from './nal.ts';
import { withoutIds } from './parameter-sets.ts';
import { readVuiHead, type Colour, type Ratio, type VuiHead } from './vui.ts';

export interface H264Sps {
  readonly id: number;
  readonly profile: number;
  /** constraint_set flags, first one in the highest bit. */
  readonly constraints: number;
  /** level_idc: ten times the level. */
  readonly level: number;
  /** 0 monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4. */
  readonly chromaFormat: number;
  readonly bitDepthLuma: number;
  readonly bitDepthChroma: number;
  /** Cropped size in samples, before the sample aspect ratio. */
  readonly width: number;
  readonly height: number;
  readonly interlaced: boolean;
  /** separate_colour_plane_flag: each colour is coded in slices of its own. */
  readonly separatePlanes: boolean;
  /** Bits of frame_num in a slice header. */
  readonly frameNumBits: number;
  /** Bits of pic_order_cnt_lsb in a slice header; 0 for another pic_order_cnt_type. */
  readonly pocLsbBits: number;
  /** Whether slice headers have delta_pic_order_cnt: pic_order_cnt_type 1 without delta_pic_order_always_zero_flag. */
  readonly pocDeltas: boolean;
  readonly sar: Ratio;
  readonly colour: Colour | undefined;
  /** Frames per second, 0 when unknown. */
  readonly framerate: number;
  /** Frames that can precede another in decoding and follow it in output; undefined when not limited. */
  readonly maxReorderFrames: number | undefined;
  /** Output order may differ from decoding order. */
  readonly mayHaveBFrames: boolean;
}

/** Profiles whose SPS has chroma format and scaling lists (H.264 7.3.2.1.1). */
const HIGH_PROFILES = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);
/** Profiles that constraint_set3 makes intra-only (E.2.1, max_num_reorder_frames). */
const INTRA_CAPABLE = new Set([44, 86, 100, 110, 122, 244]);
const BASELINE = 66;
/** Bits before seq_parameter_set_id: NAL header, profile, constraints and level. */
const ID_AT = 32;
const MAX_MACROBLOCKS_ACROSS = 1024;

export function hasChromaFormat(profile: number): boolean {
  return HIGH_PROFILES.has(profile);
}

/** Reads a sequence parameter set with its NAL header (H.264 7.3.2.1.1 and E.1.1). @throws BitstreamError */
export function parseSps(nal: Buffer): H264Sps {
  if (nal.length < 4 || ((nal[0] as number) & 0x1f) !== 7) throw new BitstreamError('not an H.264 SPS');
  const reader = new BitReader(unescapeNal(nal).subarray(1));
  const profile = reader.read(8);
  const constraints = reader.read(8);
  const level = reader.read(8);
  const id = reader.ueMax(31, 'seq_parameter_set_id');

  let chromaFormat = 1;
  let separatePlanes = false;
  let bitDepthLuma = 8;
  let bitDepthChroma = 8;
  if (hasChromaFormat(profile)) {
    chromaFormat = reader.ueMax(3, 'chroma_format_idc');
    if (chromaFormat === 3) separatePlanes = reader.flag();
    bitDepthLuma = 8 + reader.ueMax(6, 'bit_depth_luma_minus8');
    bitDepthChroma = 8 + reader.ueMax(6, 'bit_depth_chroma_minus8');
    reader.skip(1);
    if (reader.flag()) skipScalingLists(reader, chromaFormat === 3 ? 12 : 8);
  }

  const frameNumBits = 4 + reader.ueMax(12, 'log2_max_frame_num_minus4');
  const { pocType, pocLsbBits, pocDeltas } = readPicOrderCount(reader);
  reader.ueMax(16, 'max_num_ref_frames');
  reader.skip(1);
  const acrossMbs = reader.ueMax(MAX_MACROBLOCKS_ACROSS - 1, 'pic_width_in_mbs_minus1') + 1;
  const downMapUnits = reader.ueMax(MAX_MACROBLOCKS_ACROSS - 1, 'pic_height_in_map_units_minus1') + 1;
  const frameMbsOnly = reader.flag();
  if (!frameMbsOnly) reader.skip(1);
  reader.skip(1);

  let width = acrossMbs * 16;
  let height = downMapUnits * (frameMbsOnly ? 16 : 32);
  if (reader.flag()) {
    const planar = chromaFormat === 0 || separatePlanes;
    const unitX = planar || chromaFormat === 3 ? 1 : 2;
    const unitY = (!planar && chromaFormat === 1 ? 2 : 1) * (frameMbsOnly ? 1 : 2);
    width -= (reader.ue() + reader.ue()) * unitX;
    height -= (reader.ue() + reader.ue()) * unitY;
    if (width <= 0 || height <= 0) throw new BitstreamError('the H.264 SPS crops the whole picture');
  }

  const vui = reader.flag() ? tolerant(() => readVui(reader)) : undefined;
  const intraOnly = INTRA_CAPABLE.has(profile) && (constraints & 0x10) !== 0;
  const inOrder = intraOnly || pocType === 2 || profile === BASELINE;
  const maxReorderFrames = vui?.maxReorderFrames ?? (inOrder ? 0 : undefined);
  return {
    id,
    profile,
    constraints,
    level,
    chromaFormat,
    bitDepthLuma,
    bitDepthChroma,
    width,
    height,
    interlaced: !frameMbsOnly,
    separatePlanes,
    frameNumBits,
    pocLsbBits,
    pocDeltas,
    sar: vui?.sar ?? { num: 1, den: 1 },
    colour: vui?.colour,
    framerate: vui?.framerate ?? 0,
    maxReorderFrames,
    mayHaveBFrames: maxReorderFrames !== 0,
  };
}

/** Content of an SPS without its id: equal for those that set up decoders alike. @throws BitstreamError */
export function spsMeaning(nal: Buffer): string {
  const reader = new BitReader(unescapeNal(nal));
  reader.skip(ID_AT);
  reader.ue();
  return withoutIds(nal, [[ID_AT, reader.position]]);
}

function skipScalingLists(reader: BitReader, count: number): void {
  for (let list = 0; list < count; list++) {
    if (!reader.flag()) continue;
    const size = list < 6 ? 16 : 64;
    let last = 8;
    let next = 8;
    for (let i = 0; i < size && next !== 0; i++) {
      next = (last + reader.se() + 256) & 255;
      if (next !== 0) last = next;
    }
  }
}

function readPicOrderCount(reader: BitReader): {
  readonly pocType: number;
  readonly pocLsbBits: number;
  readonly pocDeltas: boolean;
} {
  const pocType = reader.ueMax(2, 'pic_order_cnt_type');
  let pocLsbBits = 0;
  let pocDeltas = false;
  if (pocType === 0) {
    pocLsbBits = 4 + reader.ueMax(12, 'log2_max_pic_order_cnt_lsb_minus4');
  } else if (pocType === 1) {
    pocDeltas = !reader.flag();
    reader.se();
    reader.se();
    const cycle = reader.ueMax(255, 'num_ref_frames_in_pic_order_cnt_cycle');
    for (let i = 0; i < cycle; i++) reader.se();
  }
  return { pocType, pocLsbBits, pocDeltas };
}

interface Vui extends VuiHead {
  readonly framerate: number;
  readonly maxReorderFrames: number | undefined;
}

function readVui(reader: BitReader): Vui {
  const head = readVuiHead(reader);
  let framerate = 0;
  if (reader.flag()) {
    const unitsInTick = reader.read(32);
    const timeScale = reader.read(32);
    reader.skip(1);
    // a tick is a field, and two fields make a frame
    if (unitsInTick > 0) framerate = timeScale / unitsInTick / 2;
  }
  const nalHrd = reader.flag();
  if (nalHrd) skipHrd(reader);
  const vclHrd = reader.flag();
  if (vclHrd) skipHrd(reader);
  if (nalHrd || vclHrd) reader.skip(1);
  reader.skip(1);
  let maxReorderFrames: number | undefined;
  if (reader.flag()) {
    reader.skip(1);
    for (let i = 0; i < 4; i++) reader.ue();
    maxReorderFrames = reader.ueMax(16, 'max_num_reorder_frames');
  }
  return { ...head, framerate, maxReorderFrames };
}

function skipHrd(reader: BitReader): void {
  const count = reader.ueMax(31, 'cpb_cnt_minus1') + 1;
  reader.skip(8);
  for (let i = 0; i < count; i++) {
    reader.ue();
    reader.ue();
    reader.skip(1);
  }
  reader.skip(20);
}
