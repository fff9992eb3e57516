import { BitReader, BitstreamError } from './bits.ts';
import type { Colour } from './vui.ts';

export interface Av1SequenceHeader {
  readonly profile: number;
  /** seq_level_idx of the first operating point. */
  readonly level: number;
  readonly tier: number;
  readonly stillPicture: boolean;
  readonly reducedStillPicture: boolean;
  /** Largest frame of the sequence, in samples. */
  readonly width: number;
  readonly height: number;
  readonly bitDepth: number;
  readonly monochrome: boolean;
  readonly subsamplingX: boolean;
  readonly subsamplingY: boolean;
  /** 0 unknown, 1 vertical, 2 colocated. */
  readonly chromaSamplePosition: number;
  readonly colour: Colour;
  /** Frames per second, 0 when unknown or variable. */
  readonly framerate: number;
  readonly frames: Av1FrameSyntax;
}

/** Parameters needed to read the frame headers of a sequence (AV1 5.9.2); lengths in bits. */
export interface Av1FrameSyntax {
  readonly widthBits: number;
  readonly heightBits: number;
  readonly superres: boolean;
  /** 0 when frames have no id. */
  readonly frameIdBits: number;
  readonly orderHintBits: number;
  /** seq_force_screen_content_tools and seq_force_integer_mv. */
  readonly screenContent: number;
  readonly integerMotion: number;
  /** 0 when shown frames have no presentation time. */
  readonly presentationTimeBits: number;
  /** 0 without a decoder model. */
  readonly removalTimeBits: number;
  /** operating_point_idc of each operating point with a decoder model. */
  readonly modelled: readonly number[];
  /** Bits of the difference between frame ids. */
  readonly deltaFrameIdBits: number;
  /** Whether superblocks have 128 samples on a side, and not 64. */
  readonly largeSuperblocks: boolean;
  /** Tools that frame headers have settings of. */
  readonly tools: {
    readonly refFrameMvs: boolean;
    readonly warpedMotion: boolean;
    readonly cdef: boolean;
    readonly restoration: boolean;
    readonly separateUvDeltaQ: boolean;
    readonly filmGrain: boolean;
  };
}

const UNSPECIFIED = 2;
const SRGB = { primaries: 1, transfer: 13, matrix: 0 };
/** Lowest seq_level_idx that has a tier bit. */
const FIRST_LEVEL_WITH_TIER = 8;

/** Value of `screenContent` and `integerMotion` when each frame chooses. */
export const FRAME_CHOOSES = 2;

type Model = Pick<Av1FrameSyntax, 'presentationTimeBits' | 'removalTimeBits' | 'modelled'>;

interface Operating {
  readonly level: number;
  readonly tier: number;
  readonly framerate: number;
  readonly model: Model;
}

const NO_MODEL: Model = { presentationTimeBits: 0, removalTimeBits: 0, modelled: [] };

/** Reads the payload of a sequence header OBU (AV1 5.5). @throws BitstreamError */
export function parseSequenceHeader(payload: Buffer): Av1SequenceHeader {
  const reader = new BitReader(payload);
  const profile = reader.read(3);
  if (profile > 2) throw new BitstreamError('an unknown AV1 profile');
  const stillPicture = reader.flag();
  const reducedStillPicture = reader.flag();
  const { model, ...operating } = reducedStillPicture
    ? { level: reader.read(5), tier: 0, framerate: 0, model: NO_MODEL }
    : readOperating(reader);
  const widthBits = reader.read(4) + 1;
  const heightBits = reader.read(4) + 1;
  const width = reader.read(widthBits) + 1;
  const height = reader.read(heightBits) + 1;
  // delta_frame_id_length_minus_2 and additional_frame_id_length_minus_1
  const hasFrameIds = !reducedStillPicture && reader.flag();
  const deltaFrameIdBits = hasFrameIds ? reader.read(4) + 2 : 0;
  const frameIdBits = hasFrameIds ? deltaFrameIdBits + reader.read(3) + 1 : 0;
  const largeSuperblocks = reader.flag();
  reader.skip(2);
  const { refFrameMvs, warpedMotion, ...choices } = reducedStillPicture ? NO_TOOLS : readTools(reader);
  const superres = reader.flag();
  const [cdef, restoration] = [reader.flag(), reader.flag()];
  const colour = readColour(reader, profile);
  // what only encryption needs may be missing
  const optional = (): boolean => reader.bitsLeft > 0 && reader.flag();
  const separateUvDeltaQ = !colour.monochrome && optional();
  const tools = { refFrameMvs, warpedMotion, cdef, restoration, separateUvDeltaQ, filmGrain: optional() };
  const frames = {
    ...{ widthBits, heightBits, superres, frameIdBits, deltaFrameIdBits, largeSuperblocks },
    ...{ ...choices, ...model, tools },
  };
  return { profile, ...operating, stillPicture, reducedStillPicture, width, height, ...colour, frames };
}

/** Reads from timing_info_present_flag to the last operating point. */
function readOperating(reader: BitReader): Operating {
  let framerate = 0;
  let delayBits = 0;
  let removalTimeBits = 0;
  let presentationTimeBits = 0;
  if (reader.flag()) {
    const unitsInTick = reader.read(32);
    const timeScale = reader.read(32);
    const ticksPerPicture = reader.flag() ? reader.ue() + 1 : 0;
    if (unitsInTick > 0 && ticksPerPicture > 0) framerate = timeScale / (unitsInTick * ticksPerPicture);
    if (reader.flag()) {
      delayBits = reader.read(5) + 1;
      reader.skip(32);
      removalTimeBits = reader.read(5) + 1;
      const timeBits = reader.read(5) + 1;
      presentationTimeBits = ticksPerPicture > 0 ? 0 : timeBits;
    }
  }
  const hasDisplayDelay = reader.flag();
  const points = reader.read(5) + 1;
  let first: Pick<Operating, 'level' | 'tier'> | undefined;
  const modelled: number[] = [];
  for (let i = 0; i < points; i++) {
    const layers = reader.read(12);
    const level = reader.read(5);
    const tier = level >= FIRST_LEVEL_WITH_TIER ? reader.read(1) : 0;
    first ??= { level, tier };
    if (removalTimeBits > 0 && reader.flag()) {
      modelled.push(layers);
      reader.skip(2 * delayBits + 1);
    }
    if (hasDisplayDelay && reader.flag()) reader.skip(4);
  }
  const model = { presentationTimeBits, removalTimeBits, modelled };
  return { ...(first as Pick<Operating, 'level' | 'tier'>), framerate, model };
}

type Tools = Pick<Av1FrameSyntax, 'orderHintBits' | 'screenContent' | 'integerMotion'> &
  Pick<Av1FrameSyntax['tools'], 'refFrameMvs' | 'warpedMotion'>;

const NO_TOOLS: Tools = {
  ...{ orderHintBits: 0, screenContent: FRAME_CHOOSES, integerMotion: FRAME_CHOOSES },
  ...{ refFrameMvs: false, warpedMotion: false },
};

/** Reads from enable_interintra_compound to order_hint_bits. */
function readTools(reader: BitReader): Tools {
  reader.skip(2);
  const warpedMotion = reader.flag();
  reader.skip(1);
  const orderHint = reader.flag();
  if (orderHint) reader.skip(1);
  const refFrameMvs = orderHint && reader.flag();
  const screenContent = reader.flag() ? FRAME_CHOOSES : reader.read(1);
  const integerMotion = screenContent === 0 || reader.flag() ? FRAME_CHOOSES : reader.read(1);
  const orderHintBits = orderHint ? reader.read(3) + 1 : 0;
  return { orderHintBits, screenContent, integerMotion, refFrameMvs, warpedMotion };
}

type ColourConfig = Pick<
  Av1SequenceHeader,
  'bitDepth' | 'monochrome' | 'subsamplingX' | 'subsamplingY' | 'chromaSamplePosition' | 'colour'
>;

/** color_config(): AV1 5.5.2. */
function readColour(reader: BitReader, profile: number): ColourConfig {
  const high = reader.flag();
  const twelve = high && profile === 2 && reader.flag();
  const bitDepth = twelve ? 12 : high ? 10 : 8;
  const monochrome = profile !== 1 && reader.flag();
  const described = reader.flag();
  const primaries = described ? reader.read(8) : UNSPECIFIED;
  const transfer = described ? reader.read(8) : UNSPECIFIED;
  const matrix = described ? reader.read(8) : UNSPECIFIED;
  const rest = { bitDepth, monochrome };
  if (monochrome) {
    const colour = { primaries, transfer, matrix, fullRange: reader.flag() };
    return { ...rest, subsamplingX: true, subsamplingY: true, chromaSamplePosition: 0, colour };
  }
  if (primaries === SRGB.primaries && transfer === SRGB.transfer && matrix === SRGB.matrix) {
    const colour = { primaries, transfer, matrix, fullRange: true };
    return { ...rest, subsamplingX: false, subsamplingY: false, chromaSamplePosition: 0, colour };
  }
  const colour = { primaries, transfer, matrix, fullRange: reader.flag() };
  let subsamplingX = profile !== 1;
  let subsamplingY = profile === 0;
  if (profile === 2 && bitDepth === 12) {
    subsamplingX = reader.flag();
    subsamplingY = subsamplingX && reader.flag();
  }
  const chromaSamplePosition = subsamplingX && subsamplingY ? reader.read(2) : 0;
  return { ...rest, subsamplingX, subsamplingY, chromaSamplePosition, colour };
}
