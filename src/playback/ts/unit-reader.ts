import { isOfStream, readPesHeader, type PesHeader } from '../../containers/mpegts/pes-header.ts';
import { PACKET_BYTES, SYNC_BYTE } from '../../containers/mpegts/stream-types.ts';
import { hasPayload, payloadStart, pidOf, startsUnit } from '../../containers/mpegts/transport-packet.ts';
import { ClipError } from '../clip/error.ts';
import { damagedTs } from './error.ts';
import { MAX_HEAD_BYTES } from './forms.ts';

/** A PES packet. */
export interface TsFileUnit {
  readonly pid: number;
  /** Position of its first transport packet in the file. */
  readonly at: number;
  readonly header: PesHeader;
  /** Beginning of its payload, as much as was wanted; valid until the call returns. */
  readonly payload: Buffer;
  /** Bytes of the whole payload. */
  readonly bytes: number;
}

export interface UnitReaderEvents {
  /** Reports a whole PES packet. */
  unit(unit: TsFileUnit): void;
  /** Reports the payload of a packet with tables. */
  table?(pid: number, data: Buffer, from: number, to: number, starts: boolean): void;
}

/** Part of a PID that is wanted: all of its payload, its beginning, or tables. */
export type Wanted = 'whole' | 'head' | 'table';

const PIDS = 0x2000;
const FIRST_BYTES = 64 * 1024;
/** Largest payload: that of a video frame. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Enough for a header, and what stands in front of the first slice of a frame. */
const HEAD_BYTES = MAX_HEAD_BYTES + 512;
const NONE = 0;
const KINDS: readonly (Wanted | undefined)[] = [undefined, 'whole', 'head', 'table'];

/**
 * Reads PES packets of a file that a recorder has written: whole transport packets, and one PES packet after another
 * (ISO/IEC 13818-1 2.4.3).
 */
export class UnitReader {
  readonly #events: UnitReaderEvents;
  /** By PID. */
  readonly #wanted = new Uint8Array(PIDS);
  #buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #have = 0;
  #bytes = 0;
  #at = 0;
  #limit = 0;
  /** PID of the open packet. */
  #open: number | undefined;

  constructor(events: UnitReaderEvents) {
    this.#events = events;
  }

  want(pid: number, wanted: Wanted | undefined): void {
    this.#wanted[pid] = wanted === undefined ? NONE : KINDS.indexOf(wanted);
  }

  /**
   * @param data whole transport packets; not kept
   * @param position of the data in the file
   * @throws ClipError for other bytes, and for PES packets that are interleaved
   */
  push(data: Buffer, position: number): void {
    for (let at = 0; at < data.length; at += PACKET_BYTES) {
      if (data[at] !== SYNC_BYTE) throw damagedTs(`no transport packet is at byte ${position + at}`);
      const pid = pidOf(data, at);
      const kind = this.#wanted[pid] as number;
      if (kind === NONE || !hasPayload(data, at)) continue;
      const from = payloadStart(data, at);
      const to = at + PACKET_BYTES;
      if (from >= to) continue;
      const starts = startsUnit(data, at);
      if (KINDS[kind] === 'table') {
        this.#events.table?.(pid, data, from, to, starts);
        continue;
      }
      if (starts) {
        this.end();
        this.#open = pid;
        this.#at = position + at;
        this.#limit = KINDS[kind] === 'head' ? HEAD_BYTES : MAX_BYTES;
      } else if (pid !== this.#open) {
        if (this.#open === undefined) continue;
        throw new ClipError('unsupported', 'the MPEG-TS file has frames that are interleaved');
      }
      this.#append(data, from, to);
    }
  }

  /** Ends the open packet, since nothing of it follows. */
  end(): void {
    const pid = this.#open;
    this.#open = undefined;
    const have = this.#have;
    const bytes = this.#bytes;
    this.#have = 0;
    this.#bytes = 0;
    if (pid === undefined) return;
    const begun = this.#buffer.subarray(0, have);
    if (have < 6 || begun.readUIntBE(0, 3) !== 1 || !isOfStream(begun)) return;
    const header = readPesHeader(begun);
    if (header === undefined || header.scrambled) return;
    const own = bytes - header.length;
    // one that is cut off
    if (header.announcedBytes > 0 && header.announcedBytes + 6 !== bytes) return;
    this.#events.unit({ pid, at: this.#at, header, payload: begun.subarray(header.length), bytes: own });
  }

  #append(data: Buffer, from: number, to: number): void {
    this.#bytes += to - from;
    const end = Math.min(this.#have + to - from, this.#limit);
    if (this.#bytes > MAX_BYTES) throw damagedTs(`a frame has more than ${MAX_BYTES} bytes`);
    if (end > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(end, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, this.#have);
      this.#buffer = larger;
    }
    if (end > this.#have) this.#have += data.copy(this.#buffer, this.#have, from, from + end - this.#have);
  }
}
