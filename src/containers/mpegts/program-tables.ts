import { buildPat, buildPmt, PROGRAM, sectionPackets, writeSection, type ListedProgram } from './section-writer.ts';
import { PACKET_BYTES, PID } from './stream-types.ts';

/** PAT and PMT at a place in the stream. */
export interface WrittenTables {
  readonly bytes: number;
  readonly pmt: Buffer;
  /** continuity_counter of the first packet of each. */
  readonly patCounter: number;
  readonly pmtCounter: number;
}

const PAT = buildPat();

/** Tables of a program whose tracks come and go. */
export class ProgramTables {
  #pmt: Buffer | undefined;
  #version = 0;
  #patPackets = 0;
  #pmtPackets = 0;

  /**
   * Sets the content of the program.
   * @returns whether it has changed; undefined if it does not fit, and nothing changes
   */
  set(program: Omit<ListedProgram, 'version'>): boolean | undefined {
    const same = buildPmt({ ...program, version: this.#version });
    if (same === undefined) return undefined;
    if (this.#pmt?.equals(same) === true) return false;
    if (this.#pmt !== undefined) this.#version++;
    this.#pmt = buildPmt({ ...program, version: this.#version });
    return true;
  }

  /** Takes the next counters for the tables. */
  write(): WrittenTables {
    const pmt = this.#pmt as Buffer;
    const pmtPackets = sectionPackets(pmt);
    const written = {
      bytes: (1 + pmtPackets) * PACKET_BYTES,
      pmt,
      patCounter: this.#patPackets,
      pmtCounter: this.#pmtPackets,
    };
    this.#patPackets++;
    this.#pmtPackets += pmtPackets;
    return written;
  }
}

/** @returns the end */
export function writeTables(out: Buffer, at: number, { pmt, patCounter, pmtCounter }: WrittenTables): number {
  const behind = writeSection(out, at, PID.pat, patCounter, PAT);
  return writeSection(out, behind, PROGRAM.pid, pmtCounter, pmt);
}
