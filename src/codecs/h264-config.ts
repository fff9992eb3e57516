import { BitReader, BitstreamError } from './bits.ts';
import { ByteReader } from './byte-reader.ts';
import { parsePps } from './h264-pps.ts';
import { hasChromaFormat, parseSps } from './h264-sps.ts';
import { unescapeNal, type LengthSize } from './nal.ts';
import { mergeById, readParameterSets, writeParameterSets } from './parameter-sets.ts';

/** AVCDecoderConfigurationRecord (ISO/IEC 14496-15 5.3.3.1.2). */
export interface AvcConfig {
  readonly profile: number;
  /** constraint_set flags, first one in the highest bit. */
  readonly constraints: number;
  readonly level: number;
  /** Bytes of the length in front of each NAL unit. */
  readonly lengthSize: LengthSize;
  readonly sps: readonly Buffer[];
  readonly pps: readonly Buffer[];
  readonly spsExtensions: readonly Buffer[];
}

const MAX_SPS = 31;
const MAX_PPS = 255;

/**
 * Reads an avcC payload. The fields behind the PPS are optional, for many writers leave them out.
 * @throws BitstreamError
 */
export function parseAvcConfig(record: Buffer): AvcConfig {
  const reader = new ByteReader(record);
  if (reader.u8() !== 1) throw new BitstreamError('not an AVC configuration record');
  const profile = reader.u8();
  const constraints = reader.u8();
  const level = reader.u8();
  const lengthSize = ((reader.u8() & 3) + 1) as LengthSize;
  const sps = readParameterSets(reader, reader.u8() & 0x1f);
  const pps = readParameterSets(reader, reader.u8());
  let spsExtensions: Buffer[] = [];
  if (hasChromaFormat(profile) && reader.left >= 4) {
    reader.bytes(3);
    spsExtensions = readParameterSets(reader, reader.u8());
  }
  return { profile, constraints, level, lengthSize, sps, pps, spsExtensions };
}

/**
 * Writes an avcC payload for 4-byte lengths.
 * @throws BitstreamError when there is no SPS or PPS, or the first SPS is malformed
 */
export function buildAvcConfig({
  sps,
  pps,
  spsExtensions = [],
}: Pick<AvcConfig, 'sps' | 'pps'> & Partial<Pick<AvcConfig, 'spsExtensions'>>): Buffer {
  const [first] = sps;
  if (first === undefined || pps.length === 0) throw new BitstreamError('H.264 needs an SPS and a PPS');
  if (sps.length > MAX_SPS || pps.length > MAX_PPS || spsExtensions.length > MAX_PPS) {
    throw new BitstreamError('too many H.264 parameter sets');
  }
  const { profile, constraints, level, chromaFormat, bitDepthLuma, bitDepthChroma } = parseSps(first);
  const parts = [Buffer.of(1, profile, constraints, level, 0xff, 0xe0 | sps.length)];
  writeParameterSets(parts, sps);
  parts.push(Buffer.of(pps.length));
  writeParameterSets(parts, pps);
  if (hasChromaFormat(profile)) {
    parts.push(
      Buffer.of(0xfc | chromaFormat, 0xf8 | (bitDepthLuma - 8), 0xf8 | (bitDepthChroma - 8), spsExtensions.length),
    );
    writeParameterSets(parts, spsExtensions);
  }
  return Buffer.concat(parts);
}

/**
 * The configuration after in-band parameter sets: each takes the place of the one with its id.
 * Answers the same object when they change nothing.
 * @throws BitstreamError when one is malformed
 */
export function withParameterSets(config: AvcConfig, sets: readonly Buffer[]): AvcConfig {
  const ofType = (type: number) => sets.filter((nal) => ((nal[0] as number) & 0x1f) === type);
  const sps = mergeById(config.sps, ofType(7), (nal) => parseSps(nal).id);
  const pps = mergeById(config.pps, ofType(8), (nal) => parsePps(nal).id);
  const spsExtensions = mergeById(config.spsExtensions, ofType(13), extensionId);
  if (sps === config.sps && pps === config.pps && spsExtensions === config.spsExtensions) return config;
  const [first] = sps;
  if (first === undefined) return { ...config, pps, spsExtensions };
  const { profile, constraints, level } = parseSps(first);
  return { ...config, profile, constraints, level, sps, pps, spsExtensions };
}

/** RFC 6381: `avc1.PPCCLL`. */
export function codecString(config: Pick<AvcConfig, 'profile' | 'constraints' | 'level'>): string {
  const { profile, constraints, level } = config;
  return `avc1.${Buffer.of(profile, constraints, level).toString('hex')}`;
}

function extensionId(nal: Buffer): number {
  return new BitReader(unescapeNal(nal.subarray(1, 16))).ueMax(31, 'seq_parameter_set_id');
}
