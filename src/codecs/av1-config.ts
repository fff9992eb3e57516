import { BitstreamError } from './bits.ts';
import { ByteReader } from './byte-reader.ts';
import { OBU, obus } from './av1-obu.ts';
import { parseSequenceHeader, type Av1SequenceHeader } from './av1-sequence.ts';

type Format = Pick<
  Av1SequenceHeader,
  'profile' | 'level' | 'tier' | 'bitDepth' | 'monochrome' | 'subsamplingX' | 'subsamplingY' | 'chromaSamplePosition'
>;

/** AV1CodecConfigurationRecord (AV1 in ISOBMFF 2.3). */
export interface Av1Config extends Format {
  /** Undefined when the record holds none. */
  readonly sequenceHeader: Av1SequenceHeader | undefined;
}

const MARKER_AND_VERSION = 0x81;
const HIGHEST_UNASSIGNED_COLOUR = 2;

/** Reads an av1C payload. @throws BitstreamError */
export function parseAv1Config(record: Buffer): Av1Config {
  const reader = new ByteReader(record);
  if (reader.u8() !== MARKER_AND_VERSION) throw new BitstreamError('not an AV1 configuration record');
  const [first, second] = [reader.u8(), reader.u8()];
  reader.u8();
  const header = sequenceHeaderObu(reader.bytes(reader.left));
  return {
    profile: first >> 5,
    level: first & 0x1f,
    tier: second >> 7,
    bitDepth: (second & 0x40) === 0 ? 8 : (second & 0x20) === 0 ? 10 : 12,
    monochrome: (second & 0x10) !== 0,
    subsamplingX: (second & 8) !== 0,
    subsamplingY: (second & 4) !== 0,
    chromaSamplePosition: second & 3,
    sequenceHeader: header && parseSequenceHeader(header.payload),
  };
}

/** Writes an av1C payload from OBUs that include a sequence header. @throws BitstreamError when it is missing or malformed */
export function buildAv1Config(data: Buffer): Buffer {
  const obu = sequenceHeaderObu(data);
  if (obu === undefined) throw new BitstreamError('AV1 needs a sequence header');
  if (!obu.hasSize) throw new BitstreamError('the AV1 sequence header does not give its size');
  const header = parseSequenceHeader(obu.payload);
  return Buffer.concat([
    Buffer.of(
      MARKER_AND_VERSION,
      (header.profile << 5) | header.level,
      (header.tier << 7) |
        (Number(header.bitDepth > 8) << 6) |
        (Number(header.bitDepth === 12) << 5) |
        (Number(header.monochrome) << 4) |
        (Number(header.subsamplingX) << 3) |
        (Number(header.subsamplingY) << 2) |
        header.chromaSamplePosition,
      0,
    ),
    obu.data,
  ]);
}

/** Codec by AV1 in ISOBMFF 5: `av01.P.LLT.DD`, with `.M.CCC.cp.tc.mc.F` when one of those is neither default nor unspecified. */
export function codecString(config: Av1Config): string {
  const tier = config.tier === 0 ? 'M' : 'H';
  const short = `av01.${config.profile}.${two(config.level)}${tier}.${two(config.bitDepth)}`;
  const colour = config.sequenceHeader?.colour;
  const points = colour === undefined ? [] : [colour.primaries, colour.transfer, colour.matrix];
  const usual =
    config.subsamplingX &&
    config.subsamplingY &&
    !config.monochrome &&
    colour?.fullRange !== true &&
    points.every((point) => point <= HIGHEST_UNASSIGNED_COLOUR);
  if (usual) return short;
  const position = config.subsamplingX && config.subsamplingY ? config.chromaSamplePosition : 0;
  const chroma = `${Number(config.subsamplingX)}${Number(config.subsamplingY)}${position}`;
  const described = (points.length === 0 ? [1, 1, 1] : points).map(two).join('.');
  return `${short}.${Number(config.monochrome)}.${chroma}.${described}.${Number(colour?.fullRange === true)}`;
}

function sequenceHeaderObu(data: Buffer) {
  for (const obu of obus(data)) if (obu.type === OBU.sequenceHeader) return obu;
  return undefined;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
