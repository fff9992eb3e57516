import { BitstreamError, tolerant } from '../../codecs/bits.ts';
import * as h264 from '../../codecs/h264-slice.ts';
import { parseAvcConfig } from '../../codecs/h264-config.ts';
import { parsePps as parsePps264 } from '../../codecs/h264-pps.ts';
import { parseSliceTools as tools264, sliceHeaderBytes as bytes264 } from '../../codecs/h264-slice-header.ts';
import { parseSps as parseSps264 } from '../../codecs/h264-sps.ts';
import { parseHevcConfig } from '../../codecs/h265-config.ts';
import { parsePps as parsePps265 } from '../../codecs/h265-pps.ts';
import * as h265 from '../../codecs/h265-slice.ts';
import { parseSliceTools as tools265, sliceHeaderBytes as bytes265 } from '../../codecs/h265-slice-header.ts';
import { parseSliceSets } from '../../codecs/h265-sps.ts';

/** Parameter sets of one stream: each is read once, and replaces the one with its id. */
export interface SliceHeaders {
  /** Takes a set. Slices that need one that cannot be read are like those whose set is missing. */
  add(set: Buffer): void;
  /** Number of bytes of a slice up to its data. @throws BitstreamError when it or its sets cannot be read, or are missing */
  bytes(slice: Buffer): number;
}

/** Syntax that the subsamples of a codec depend on. */
export interface NalSyntax {
  kindOf(nal: Buffer): 'slice' | 'parameterSet' | 'other';
  parameterSetsOf(config: Buffer): readonly Buffer[];
  /** Headers of slices whose sets have yet to be added. */
  headers(): SliceHeaders;
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
    const type = typeOf264(nal);
    if (type >= 1 && type <= LAST_SLICE_264) return 'slice';
    return type === SPS_264 || type === PPS_264 ? 'parameterSet' : 'other';
  },
  parameterSetsOf: (config) => {
    const { sps, pps } = parseAvcConfig(config);
    return [...sps, ...pps];
  },
  headers: () => {
    const spsById = new KnownSets(parseSps264);
    const ppsById = new KnownSets(tools264, (nal) => parsePps264(nal).id);
    return {
      add: (set) => (typeOf264(set) === SPS_264 ? spsById : ppsById).add(set),
      bytes: (slice) => {
        const tools = ppsById.find(h264.parseSliceStart(slice).pps);
        return bytes264(slice, spsById.find(tools.sps), tools);
      },
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
  headers: () => {
    const spsById = new KnownSets(parseSliceSets);
    const ppsById = new KnownSets(tools265, (nal) => parsePps265(nal).id);
    return {
      add: (set) => {
        if (typeOf265(set) === SPS_265) spsById.add(set);
        else if (typeOf265(set) === PPS_265) ppsById.add(set);
      },
      bytes: (slice) => {
        const tools = ppsById.find(h265.parseSliceStart(slice).pps);
        return bytes265(slice, spsById.find(tools.sps), tools);
      },
    };
  },
};

/** Codecs whose slices are encrypted without their headers (ISO/IEC 23001-7, 9.5.2). */
export const NAL_SYNTAX: Readonly<Partial<Record<string, NalSyntax>>> = { H264, H265 };

function typeOf264(nal: Buffer): number {
  return (nal[0] as number) & 0x1f;
}

function typeOf265(nal: Buffer): number {
  return ((nal[0] as number) >> 1) & 0x3f;
}

/** Content of the parameter sets of one kind, by id. Ids have limits, so that the number of sets has one. */
class KnownSets<Value extends { readonly id: number }> {
  readonly #read: (nal: Buffer) => Value;
  readonly #idOf: ((nal: Buffer) => number) | undefined;
  readonly #byId = new Map<number, Value>();

  /** @param idOf id of a set whose rest cannot be read; absent: such a set is ignored */
  constructor(read: (nal: Buffer) => Value, idOf?: (nal: Buffer) => number) {
    this.#read = read;
    this.#idOf = idOf;
  }

  add(nal: Buffer): void {
    const value = tolerant(() => this.#read(nal));
    if (value !== undefined) this.#byId.set(value.id, value);
    else {
      const id = tolerant(() => this.#idOf?.(nal));
      if (id !== undefined) this.#byId.delete(id);
    }
  }

  /** @throws BitstreamError */
  find(id: number): Value {
    const value = this.#byId.get(id);
    if (value === undefined) throw new BitstreamError('a slice without its parameter sets');
    return value;
  }
}
