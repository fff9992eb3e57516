import { BitstreamError } from '../../codecs/bits.ts';
import * as h264 from '../../codecs/h264-slice.ts';
import { parseAvcConfig } from '../../codecs/h264-config.ts';
import { parsePps as parsePps264 } from '../../codecs/h264-pps.ts';
import { parseSliceTools as tools264, sliceHeaderBytes as bytes264 } from '../../codecs/h264-slice-header.ts';
import { parseSps as parseSps264 } from '../../codecs/h264-sps.ts';
import { parseHevcConfig } from '../../codecs/h265-config.ts';
import { parsePps as parsePps265 } from '../../codecs/h265-pps.ts';
import * as h265 from '../../codecs/h265-slice.ts';
import { parseSliceTools as tools265, sliceHeaderBytes as bytes265 } from '../../codecs/h265-slice-header.ts';
import { parseSliceSets, parseSps as parseSps265 } from '../../codecs/h265-sps.ts';

/** Number of bytes up to the data of a slice. @throws BitstreamError */
type HeaderBytes = (nal: Buffer) => number;

/** Syntax that the subsamples of a codec depend on. */
export interface NalSyntax {
  kindOf(nal: Buffer): 'slice' | 'parameterSet' | 'other';
  parameterSetsOf(config: Buffer): readonly Buffer[];
  /** @throws BitstreamError when a set is malformed */
  headers(sets: readonly Buffer[]): HeaderBytes;
}

const SPS_264 = 7;
const PPS_264 = 8;
const LAST_SLICE_264 = 5;
const LAST_VCL_265 = 31;
const VPS_265 = 32;
const SPS_265 = 33;
const PPS_265 = 34;

const H264: NalSyntax = {
  kindOf: (nal) => {
    const type = (nal[0] as number) & 0x1f;
    if (type >= 1 && type <= LAST_SLICE_264) return 'slice';
    return type === SPS_264 || type === PPS_264 ? 'parameterSet' : 'other';
  },
  parameterSetsOf: (config) => {
    const { sps, pps } = parseAvcConfig(config);
    return [...sps, ...pps];
  },
  headers: (sets) => {
    const typeOf = (nal: Buffer): number => (nal[0] as number) & 0x1f;
    const known = pairs(
      sets.filter((nal) => typeOf(nal) === SPS_264),
      parseSps264,
    );
    const byPps = pairs(
      sets.filter((nal) => typeOf(nal) === PPS_264),
      (nal) => ({ ...parsePps264(nal), tools: tools264(nal) }),
    );
    return (nal) => {
      const { sps: id, tools } = found(byPps.get(h264.parseSliceStart(nal).pps));
      return bytes264(nal, found(known.get(id)), tools);
    };
  },
};

const H265: NalSyntax = {
  kindOf: (nal) => {
    const type = typeOf265(nal);
    if (type <= LAST_VCL_265) return 'slice';
    return type >= VPS_265 && type <= PPS_265 ? 'parameterSet' : 'other';
  },
  parameterSetsOf: (config) => {
    const { sps, pps } = parseHevcConfig(config);
    return [...sps, ...pps];
  },
  headers: (sets) => {
    const known = new Map(
      sets.filter((nal) => typeOf265(nal) === SPS_265).map((nal) => [parseSps265(nal).id, parseSliceSets(nal)]),
    );
    const byPps = pairs(
      sets.filter((nal) => typeOf265(nal) === PPS_265),
      (nal) => ({ ...parsePps265(nal), tools: tools265(nal) }),
    );
    return (nal) => {
      const { sps: id, tools } = found(byPps.get(h265.parseSliceStart(nal).pps));
      return bytes265(nal, found(known.get(id)), tools);
    };
  },
};

/** Codecs whose slices are encrypted without their headers (ISO/IEC 23001-7, 9.5.2). */
export const NAL_SYNTAX: Readonly<Partial<Record<string, NalSyntax>>> = { H264, H265 };

function typeOf265(nal: Buffer): number {
  return ((nal[0] as number) >> 1) & 0x3f;
}

function pairs<Value extends { readonly id: number }>(
  nals: readonly Buffer[],
  read: (nal: Buffer) => Value,
): Map<number, Value> {
  return new Map(nals.map(read).map((value) => [value.id, value]));
}

function found<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new BitstreamError('a slice without its parameter sets');
  return value;
}
