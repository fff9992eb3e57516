import { BitReader, BitstreamError } from './bits.ts';
import { ByteReader } from './byte-reader.ts';
import { parsePps } from './h264-pps.ts';
import { hasChromaFormat, parseSps, spsMeaning } from './h264-sps.ts';
import { unescapeNal, type LengthSize } from './nal.ts';
import {
  readParameterSets,
  writeParameterSets,
  type ActiveSets,
  type ParameterSets,
  type SetPlace,
} from './parameter-sets.ts';

/** AVCDecoderConfigurationRecord (ISO/IEC 14496-15 5.3.3.1.2). */
export interface AvcConfig {
  readonly profile: number;
  /** constraint_set flags, first one in the highest bit. */
  readonly constraints: number;
  readonly level: number;
  /** Bytes of each NAL unit's length field. */
  readonly lengthSize: LengthSize;
  readonly sps: readonly Buffer[];
  readonly pps: readonly Buffer[];
  readonly spsExtensions: readonly Buffer[];
}

const SPS = 7;
const PPS = 8;
const SPS_EXTENSION = 13;
const MAX_SPS = 31;
const MAX_PPS = 255;

/** Reads an avcC payload. The fields after the PPS are optional: many writers omit them. @throws BitstreamError */
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

/** Writes an avcC payload for 4-byte lengths. @throws BitstreamError without SPS or PPS, or with a malformed first SPS */
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

/** Kind and ids of a parameter set. @throws BitstreamError when malformed */
export function placeOfSet(nal: Buffer): SetPlace {
  const kind = (nal[0] as number) & 0x1f;
  if (kind === SPS) return { kind, id: parseSps(nal).id, of: 0 };
  if (kind === PPS) {
    const { id, sps } = parsePps(nal);
    return { kind, id, of: sps };
  }
  const sps = new BitReader(unescapeNal(nal.subarray(1, 16))).ueMax(31, 'seq_parameter_set_id');
  return { kind, id: sps, of: sps };
}

/**
 * Returns the parameter sets that a picture with this PPS needs; undefined while one is missing. The PPS activates its SPS
 * (H.264 7.4.1.2.1), and every picture before the next IDR picture refers to the same SPS.
 */
export function activeSets(known: ParameterSets, ppsId: number): ActiveSets | undefined {
  const pps = known.get(PPS, ppsId);
  const id = pps && parsePps(pps).sps;
  const sps = id === undefined ? undefined : known.get(SPS, id);
  if (id === undefined || sps === undefined) return undefined;
  const all = (kind: number): Buffer[] => known.all(kind, id).map(({ nal }) => nal);
  const [spsExtensions, ppss] = [all(SPS_EXTENSION), all(PPS)];
  return {
    nals: [sps, ...spsExtensions, ...ppss],
    sps,
    meaning: spsMeaning(sps),
    record: buildAvcConfig({ sps: [sps], pps: ppss.slice(0, MAX_PPS), spsExtensions }),
  };
}

/** Codec of RFC 6381: `avc1.PPCCLL`. @param entry sample entry: `avc3` when samples carry the parameter sets */
export function codecString(
  config: Pick<AvcConfig, 'profile' | 'constraints' | 'level'>,
  entry: 'avc1' | 'avc3' = 'avc1',
): string {
  const { profile, constraints, level } = config;
  return `${entry}.${Buffer.of(profile, constraints, level).toString('hex')}`;
}
