import { BitReader, BitstreamError } from './bits.ts';
import { ByteReader } from './byte-reader.ts';
import { parsePps } from './h265-pps.ts';
import { parseSps, spsMeaning, type H265Sps, type ProfileTierLevel } from './h265-sps.ts';
import type { LengthSize } from './nal.ts';
import {
  readParameterSets,
  withoutIds,
  writeParameterSets,
  type ActiveSets,
  type ParameterSets,
  type SetPlace,
} from './parameter-sets.ts';

/** HEVCDecoderConfigurationRecord (ISO/IEC 14496-15 8.3.3.1.2). */
export interface HevcConfig extends ProfileTierLevel {
  /** Bytes of each NAL unit's length field. */
  readonly lengthSize: LengthSize;
  readonly vps: readonly Buffer[];
  readonly sps: readonly Buffer[];
  readonly pps: readonly Buffer[];
}

const VPS = 32;
const SPS = 33;
const PPS = 34;
/** Bits of a VPS that hold its id. */
const VPS_ID = [16, 20] as const;
/** Offset of the number of arrays, in bytes. */
const ARRAYS_AT = 22;
const MAX_ARRAYS = 64;

/** Reads an hvcC payload; ignores arrays of other NAL units (SEI). @throws BitstreamError */
export function parseHevcConfig(record: Buffer): HevcConfig {
  const reader = new ByteReader(record);
  // version 0 is from writers older than the standard's final text
  if (reader.u8() > 1) throw new BitstreamError('not an HEVC configuration record');
  const head = reader.u8();
  const compatibility = reader.u32();
  const constraints = reader.bytes(6);
  const level = reader.u8();
  reader.bytes(8);
  const lengthSize = ((reader.u8() & 3) + 1) as LengthSize;
  const arrays = reader.u8();
  if (arrays > MAX_ARRAYS) throw new BitstreamError('the HEVC configuration record has too many arrays');
  const byType = new Map<number, Buffer[]>([
    [VPS, []],
    [SPS, []],
    [PPS, []],
  ]);
  for (let i = 0; i < arrays; i++) {
    const type = reader.u8() & 0x3f;
    const nals = readParameterSets(reader, reader.u16());
    byType.get(type)?.push(...nals);
  }
  return {
    profileSpace: head >> 6,
    tier: (head >> 5) & 1,
    profile: head & 0x1f,
    compatibility,
    constraints,
    level,
    lengthSize,
    vps: byType.get(VPS) as Buffer[],
    sps: byType.get(SPS) as Buffer[],
    pps: byType.get(PPS) as Buffer[],
  };
}

/**
 * Writes an hvcC payload for 4-byte lengths and complete arrays (sample entry `hvc1`).
 * @throws BitstreamError when a kind is missing or the first SPS is malformed
 */
export function buildHevcConfig({ vps, sps, pps }: Pick<HevcConfig, 'vps' | 'sps' | 'pps'>): Buffer {
  const [first] = sps;
  if (first === undefined || vps.length === 0 || pps.length === 0) {
    throw new BitstreamError('H.265 needs a VPS, an SPS and a PPS');
  }
  const parts = [recordHead(parseSps(first))];
  for (const [type, nals] of [
    [VPS, vps],
    [SPS, sps],
    [PPS, pps],
  ] as const) {
    parts.push(Buffer.of(0x80 | type, nals.length >> 8, nals.length & 0xff));
    writeParameterSets(parts, nals);
  }
  return Buffer.concat(parts);
}

function recordHead(sps: H265Sps): Buffer {
  const head = Buffer.alloc(23);
  head[0] = 1;
  head[1] = (sps.profileSpace << 6) | (sps.tier << 5) | sps.profile;
  head.writeUInt32BE(sps.compatibility, 2);
  sps.constraints.copy(head, 6);
  head[12] = sps.level;
  head.writeUInt16BE(0xf000 | sps.minSpatialSegmentation, 13);
  // parallelismType 0: unknown
  head[15] = 0xfc;
  head[16] = 0xfc | sps.chromaFormat;
  head[17] = 0xf8 | (sps.bitDepthLuma - 8);
  head[18] = 0xf8 | (sps.bitDepthChroma - 8);
  // avgFrameRate 0 and constantFrameRate 0: unknown; lengthSizeMinusOne 3
  head[21] = (sps.temporalLayers << 3) | (Number(sps.temporalIdNested) << 2) | 3;
  head[22] = 3;
  return head;
}

/** Kind and ids of a parameter set. @throws BitstreamError when malformed */
export function placeOfSet(nal: Buffer): SetPlace {
  const kind = ((nal[0] as number) >> 1) & 0x3f;
  if (kind === VPS) return { kind, id: fourBits(nal), of: 0 };
  if (kind === SPS) return { kind, id: parseSps(nal).id, of: fourBits(nal) };
  const { id, sps } = parsePps(nal);
  return { kind, id, of: sps };
}

/**
 * Returns the parameter sets that a picture with this PPS needs; undefined while one is missing. The PPS activates its SPS
 * and VPS (H.265 7.4.2.4.2), and every picture of the coded video sequence refers to the same ones.
 */
export function activeSets(known: ParameterSets, ppsId: number): ActiveSets | undefined {
  const pps = known.get(PPS, ppsId);
  const id = pps && parsePps(pps).sps;
  const sps = id === undefined ? undefined : known.get(SPS, id);
  const vps = sps && known.get(VPS, fourBits(sps));
  if (id === undefined || sps === undefined || vps === undefined) return undefined;
  const ppss = known.all(PPS, id).map(({ nal }) => nal);
  return {
    nals: [vps, sps, ...ppss],
    sps,
    meaning: withoutIds(vps, [VPS_ID]) + spsMeaning(sps),
    record: buildHevcConfig({ vps: [vps], sps: [sps], pps: ppss }),
  };
}

/** Marks the arrays of a record as incomplete, as samples carry sets too (sample entry `hev1`). @throws BitstreamError */
export function withOpenArrays(record: Buffer): Buffer {
  const open = Buffer.from(record);
  const reader = new ByteReader(record);
  reader.bytes(ARRAYS_AT);
  let at = ARRAYS_AT + 1;
  for (let arrays = reader.u8(); arrays > 0; arrays--) {
    open[at] = reader.u8() & 0x7f;
    const nals = readParameterSets(reader, reader.u16());
    at += nals.reduce((size, { length }) => size + 2 + length, 3);
  }
  return open;
}

/**
 * Codec of ISO/IEC 14496-15 annex E.3: `hvc1.<profile>.<compatibility, reversed>.<tier and level>.<constraints>`.
 * @param entry sample entry: `hev1` when samples carry the parameter sets
 */
export function codecString(config: ProfileTierLevel, entry: 'hvc1' | 'hev1' = 'hvc1'): string {
  const space = ['', 'A', 'B', 'C'][config.profileSpace] ?? '';
  let reversed = 0;
  for (let bit = 0; bit < 32; bit++) reversed = reversed * 2 + ((config.compatibility >>> bit) & 1);
  let used = config.constraints.length;
  while (used > 0 && config.constraints[used - 1] === 0) used--;
  const constraints = [...config.constraints.subarray(0, used)].map((byte) => `.${hex(byte)}`).join('');
  const tier = config.tier === 0 ? 'L' : 'H';
  return `${entry}.${space}${config.profile}.${hex(reversed)}.${tier}${config.level}${constraints}`;
}

function hex(value: number): string {
  return value.toString(16).toUpperCase();
}

/** Id of a VPS, or id of an SPS's VPS: the first four bits in both. */
function fourBits(nal: Buffer): number {
  return new BitReader(nal.subarray(2)).read(4);
}
