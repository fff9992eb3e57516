import { BitReader, BitstreamError, tolerant } from './bits.ts';
import { MAX_PICTURES, readRefPicSet, type RefPicSet } from './h265-ref-pics.ts';
import { unescapeNal } from './nal.ts';
import { withoutIds } from './parameter-sets.ts';
import { readVuiHead, type Colour, type Ratio, type VuiHead } from './vui.ts';

/** profile_tier_level() without its sub-layers (H.265 7.3.3). */
export interface ProfileTierLevel {
  readonly profileSpace: number;
  readonly tier: number;
  readonly profile: number;
  /** general_profile_compatibility_flag, the first one in the highest of 32 bits. */
  readonly compatibility: number;
  /** 6 bytes from general_progressive_source_flag on. */
  readonly constraints: Buffer;
  /** 30 times the level. */
  readonly level: number;
}

export interface H265Sps extends ProfileTierLevel {
  readonly id: number;
  readonly temporalLayers: number;
  readonly temporalIdNested: boolean;
  /** 0 monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4. */
  readonly chromaFormat: number;
  readonly bitDepthLuma: number;
  readonly bitDepthChroma: number;
  /** Size inside the conformance window, in samples, before the sample aspect ratio. */
  readonly width: number;
  readonly height: number;
  readonly sar: Ratio;
  readonly colour: Colour | undefined;
  /** Frames per second, 0 when unknown. */
  readonly framerate: number;
  /** Pictures that can precede another in decoding and follow it in output. */
  readonly maxReorderFrames: number;
  /** Output order may differ from decoding order. */
  readonly mayHaveBFrames: boolean;
  /** min_spatial_segmentation_idc; 0 when unknown. */
  readonly minSpatialSegmentation: number;
}

/** Fields of an SPS that decide how long slice headers are. */
export interface H265SliceSets {
  readonly id: number;
  readonly separatePlanes: boolean;
  readonly hasChroma: boolean;
  /** Bits of slice_segment_address. */
  readonly addressBits: number;
  readonly pocLsbBits: number;
  readonly refPicSets: readonly RefPicSet[];
  /** Whether the picture may refer to each of the long-term pictures of the SPS; undefined without any long-term pictures. */
  readonly longTerm: readonly boolean[] | undefined;
  readonly temporalMvp: boolean;
  readonly adaptiveOffset: boolean;
}

const MAX_SIZE = 16_384;
const NAL_HEADER_BYTES = 2;

/** Reads a sequence parameter set of the base layer with its NAL header (H.265 7.3.2.2 and E.2.1). @throws BitstreamError */
export function parseSps(nal: Buffer): H265Sps {
  return readSps(nal).sps;
}

/** Reads the fields of an SPS that decide how long slice headers are. @throws as `parseSps` */
export function parseSliceSets(nal: Buffer): H265SliceSets {
  return readSps(nal).slices;
}

function readSps(nal: Buffer): { readonly sps: H265Sps; readonly slices: H265SliceSets } {
  if (nal.length < 4 || (((nal[0] as number) >> 1) & 0x3f) !== 33) throw new BitstreamError('not an H.265 SPS');
  const reader = new BitReader(unescapeNal(nal).subarray(NAL_HEADER_BYTES));
  reader.skip(4);
  const subLayers = reader.read(3);
  if (subLayers > 6) throw new BitstreamError('the H.265 SPS is not of the base layer');
  const temporalIdNested = reader.flag();
  const profileTierLevel = readProfileTierLevel(reader, subLayers);
  const id = reader.ueMax(15, 'sps_seq_parameter_set_id');
  const chromaFormat = reader.ueMax(3, 'chroma_format_idc');
  const separatePlanes = chromaFormat === 3 && reader.flag();
  let width = reader.ueMax(MAX_SIZE, 'pic_width_in_luma_samples');
  let height = reader.ueMax(MAX_SIZE, 'pic_height_in_luma_samples');
  const coded = { width, height };
  if (reader.flag()) {
    const unitX = !separatePlanes && (chromaFormat === 1 || chromaFormat === 2) ? 2 : 1;
    const unitY = chromaFormat === 1 ? 2 : 1;
    width -= (reader.ue() + reader.ue()) * unitX;
    height -= (reader.ue() + reader.ue()) * unitY;
  }
  if (width <= 0 || height <= 0) throw new BitstreamError('the H.265 SPS has an empty picture');
  const bitDepthLuma = 8 + reader.ueMax(8, 'bit_depth_luma_minus8');
  const bitDepthChroma = 8 + reader.ueMax(8, 'bit_depth_chroma_minus8');
  const pocLsbBits = 4 + reader.ueMax(12, 'log2_max_pic_order_cnt_lsb_minus4');
  const maxReorderFrames = readReorder(reader, subLayers);
  const tools = readCodingTools(reader, pocLsbBits);
  const vui = reader.flag() ? tolerant(() => readVui(reader, subLayers)) : undefined;
  const blocks = Math.ceil(coded.width / tools.blockSize) * Math.ceil(coded.height / tools.blockSize);
  const slices = {
    id,
    separatePlanes,
    hasChroma: chromaFormat !== 0 && !separatePlanes,
    addressBits: bitsOf(blocks),
    pocLsbBits,
    ...tools,
  };
  const sps = {
    ...profileTierLevel,
    id,
    temporalLayers: subLayers + 1,
    temporalIdNested,
    chromaFormat,
    bitDepthLuma,
    bitDepthChroma,
    width,
    height,
    sar: vui?.sar ?? { num: 1, den: 1 },
    colour: vui?.colour,
    framerate: vui?.framerate ?? 0,
    maxReorderFrames,
    mayHaveBFrames: maxReorderFrames > 0,
    minSpatialSegmentation: vui?.minSpatialSegmentation ?? 0,
  };
  return { sps, slices };
}

/** Bits that hold any number below a count: Ceil(Log2(count)). */
export function bitsOf(count: number): number {
  return count > 1 ? 32 - Math.clz32(count - 1) : 0;
}

/** Content of an SPS without its id and its VPS's: equal for those that set up decoders alike. @throws BitstreamError */
export function spsMeaning(nal: Buffer): string {
  const reader = new BitReader(unescapeNal(nal));
  reader.skip(NAL_HEADER_BYTES * 8 + 4);
  const subLayers = reader.read(3);
  reader.skip(1);
  readProfileTierLevel(reader, subLayers);
  const at = reader.position;
  reader.ue();
  return withoutIds(nal, [
    [NAL_HEADER_BYTES * 8, NAL_HEADER_BYTES * 8 + 4],
    [at, reader.position],
  ]);
}

function readProfileTierLevel(reader: BitReader, subLayers: number): ProfileTierLevel {
  const profileSpace = reader.read(2);
  const tier = reader.read(1);
  const profile = reader.read(5);
  const compatibility = reader.read(32);
  const constraints = Buffer.alloc(6);
  for (let i = 0; i < constraints.length; i++) constraints[i] = reader.read(8);
  const level = reader.read(8);
  const present: [profile: boolean, level: boolean][] = [];
  for (let i = 0; i < subLayers; i++) present.push([reader.flag(), reader.flag()]);
  if (subLayers > 0) reader.skip((8 - subLayers) * 2);
  for (const [hasProfile, hasLevel] of present) reader.skip((hasProfile ? 88 : 0) + (hasLevel ? 8 : 0));
  return { profileSpace, tier, profile, compatibility, constraints, level };
}

/** sps_max_num_reorder_pics of the highest sub-layer. */
function readReorder(reader: BitReader, subLayers: number): number {
  const all = reader.flag();
  let reorder = 0;
  for (let i = all ? 0 : subLayers; i <= subLayers; i++) {
    reader.ueMax(MAX_PICTURES - 1, 'sps_max_dec_pic_buffering_minus1');
    reorder = reader.ueMax(MAX_PICTURES - 1, 'sps_max_num_reorder_pics');
    reader.ue();
  }
  return reorder;
}

interface CodingTools extends Pick<H265SliceSets, 'refPicSets' | 'longTerm' | 'temporalMvp' | 'adaptiveOffset'> {
  /** Samples across a coding tree block. */
  readonly blockSize: number;
}

/** Reads from log2_min_luma_coding_block_size_minus3 to strong_intra_smoothing_enabled_flag. */
function readCodingTools(reader: BitReader, pocLsbBits: number): CodingTools {
  const smallest = reader.ueMax(3, 'log2_min_luma_coding_block_size_minus3') + 3;
  const blockSize = 2 ** (smallest + reader.ueMax(3, 'log2_diff_max_min_luma_coding_block_size'));
  for (let i = 0; i < 4; i++) reader.ue();
  if (reader.flag() && reader.flag()) skipScalingLists(reader);
  reader.skip(1);
  const adaptiveOffset = reader.flag();
  if (reader.flag()) {
    reader.skip(8);
    reader.ue();
    reader.ue();
    reader.skip(1);
  }
  const refPicSets: RefPicSet[] = [];
  for (let sets = reader.ueMax(64, 'num_short_term_ref_pic_sets'); sets > 0; sets--)
    refPicSets.push(readRefPicSet(reader, refPicSets));
  let longTerm: boolean[] | undefined;
  if (reader.flag()) {
    longTerm = [];
    for (let count = reader.ueMax(32, 'num_long_term_ref_pics_sps'); count > 0; count--) {
      reader.skip(pocLsbBits);
      longTerm.push(reader.flag());
    }
  }
  const temporalMvp = reader.flag();
  reader.skip(1);
  return { blockSize, adaptiveOffset, refPicSets, longTerm, temporalMvp };
}

/** Skips scaling_list_data() (7.3.4). */
export function skipScalingLists(reader: BitReader): void {
  for (let size = 0; size < 4; size++) {
    for (let matrix = 0; matrix < 6; matrix += size === 3 ? 3 : 1) {
      if (!reader.flag()) {
        reader.ue();
        continue;
      }
      const coefficients = Math.min(64, 16 << (size * 2));
      if (size > 1) reader.se();
      for (let i = 0; i < coefficients; i++) reader.se();
    }
  }
}

interface Vui extends VuiHead {
  readonly framerate: number;
  readonly minSpatialSegmentation: number;
}

function readVui(reader: BitReader, subLayers: number): Vui {
  const head = readVuiHead(reader);
  reader.skip(3);
  if (reader.flag()) for (let i = 0; i < 4; i++) reader.ue();
  let framerate = 0;
  if (reader.flag()) {
    const unitsInTick = reader.read(32);
    const timeScale = reader.read(32);
    if (unitsInTick > 0) framerate = timeScale / unitsInTick;
    if (reader.flag()) reader.ue();
    if (reader.flag()) skipHrd(reader, subLayers);
  }
  let minSpatialSegmentation = 0;
  if (reader.flag()) {
    reader.skip(3);
    minSpatialSegmentation = reader.ueMax(4095, 'min_spatial_segmentation_idc');
  }
  return { ...head, framerate, minSpatialSegmentation };
}

/** Skips hrd_parameters(1, subLayers) (E.2.2). */
function skipHrd(reader: BitReader, subLayers: number): void {
  const nal = reader.flag();
  const vcl = reader.flag();
  let subPictures = false;
  if (nal || vcl) {
    subPictures = reader.flag();
    if (subPictures) reader.skip(19);
    reader.skip(8);
    if (subPictures) reader.skip(4);
    reader.skip(15);
  }
  for (let i = 0; i <= subLayers; i++) {
    const fixedGeneral = reader.flag();
    const fixedInSequence = fixedGeneral || reader.flag();
    let lowDelay = false;
    if (fixedInSequence) reader.ue();
    else lowDelay = reader.flag();
    const count = lowDelay ? 1 : reader.ueMax(31, 'cpb_cnt_minus1') + 1;
    for (let kind = Number(nal) + Number(vcl); kind > 0; kind--) {
      for (let cpb = 0; cpb < count; cpb++) {
        for (let code = subPictures ? 4 : 2; code > 0; code--) reader.ue();
        reader.skip(1);
      }
    }
  }
}
