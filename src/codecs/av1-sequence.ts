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
}

const UNSPECIFIED = 2;
const SRGB = { primaries: 1, transfer: 13, matrix: 0 };
/** seq_level_idx from which on a tier bit follows. */
const FIRST_LEVEL_WITH_TIER = 8;

interface Operating {
  readonly level: number;
  readonly tier: number;
  readonly framerate: number;
}

/**
 * Reads the payload of a sequence header OBU (AV1 5.5).
 * @throws BitstreamError
 */
export function parseSequenceHeader(payload: Buffer): Av1SequenceHeader {
  const reader = new BitReader(payload);
  const profile = reader.read(3);
  if (profile > 2) throw new BitstreamError('an unknown AV1 profile');
  const stillPicture = reader.flag();
  const reducedStillPicture = reader.flag();
  const operating = reducedStillPicture ? { level: reader.read(5), tier: 0, framerate: 0 } : readOperating(reader);
  const widthBits = reader.read(4) + 1;
  const heightBits = reader.read(4) + 1;
  const width = reader.read(widthBits) + 1;
  const height = reader.read(heightBits) + 1;
  if (!reducedStillPicture && reader.flag()) reader.skip(7);
  reader.skip(3);
  if (!reducedStillPicture) skipTools(reader);
  reader.skip(3);
  return { profile, ...operating, stillPicture, reducedStillPicture, width, height, ...readColour(reader, profile) };
}

/** From timing_info_present_flag to the last operating point. */
function readOperating(reader: BitReader): Operating {
  let framerate = 0;
  let delayBits = 0;
  let hasDecoderModel = false;
  if (reader.flag()) {
    const unitsInTick = reader.read(32);
    const timeScale = reader.read(32);
    const ticksPerPicture = reader.flag() ? reader.ue() + 1 : 0;
    if (unitsInTick > 0 && ticksPerPicture > 0) framerate = timeScale / (unitsInTick * ticksPerPicture);
    hasDecoderModel = reader.flag();
    if (hasDecoderModel) {
      delayBits = reader.read(5) + 1;
      reader.skip(42);
    }
  }
  const hasDisplayDelay = reader.flag();
  const points = reader.read(5) + 1;
  let first: Operating | undefined;
  for (let i = 0; i < points; i++) {
    reader.skip(12);
    const level = reader.read(5);
    const tier = level >= FIRST_LEVEL_WITH_TIER ? reader.read(1) : 0;
    first ??= { level, tier, framerate };
    if (hasDecoderModel && reader.flag()) reader.skip(2 * delayBits + 1);
    if (hasDisplayDelay && reader.flag()) reader.skip(4);
  }
  return first as Operating;
}

/** From enable_interintra_compound to order_hint_bits. */
function skipTools(reader: BitReader): void {
  reader.skip(4);
  const orderHint = reader.flag();
  if (orderHint) reader.skip(2);
  const screenContent = reader.flag() || reader.flag();
  if (screenContent && !reader.flag()) reader.skip(1);
  if (orderHint) reader.skip(3);
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
