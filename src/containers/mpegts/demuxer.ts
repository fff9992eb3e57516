import { ContinuityCheck } from './continuity-check.ts';
import { elementaryStreams, type ElementaryStream, type UnknownStream } from './elementary.ts';
import { PacketReader } from './packet-reader.ts';
import type { PesHeader } from './pes-header.ts';
import { PesReader } from './pes-reader.ts';
import { ProgramChoice } from './program-choice.ts';
import { SectionReader } from './section-reader.ts';
import { PACKET_BYTES, PID } from './stream-types.ts';
import type { ProgramMap } from './tables.ts';
import {
  hasError,
  hasPayload,
  isDiscontinuity,
  isFilled,
  isScrambled,
  payloadStart,
  pcrOf,
  pidOf,
  startsUnit,
} from './transport-packet.ts';

const MAX_STREAMS = 40;

export interface DemuxerEvents {
  /**
   * Reports the supported and the other streams of the program: at first, and after each change. Unchanged streams stay
   * the same objects.
   */
  streams(streams: readonly ElementaryStream[], unknown: readonly UnknownStream[]): void;
  /** Reports a whole PES packet. @param payload is valid until the call returns */
  pes(stream: ElementaryStream, header: PesHeader, payload: Buffer): void;
  /** Reports a whole section with the right checksum, which is valid until the call returns. */
  section(stream: ElementaryStream, section: Buffer): void;
  /** Reports that data of a stream is missing. */
  lost(stream: ElementaryStream): void;
  /** Reports missing transport packets of a PID, by its continuity counter. */
  gap?(): void;
  /** Reports the clock of the program, on CLOCK. */
  clock?(pcr: number): void;
  /** Reports malformed data, possibly for every packet. */
  fault(reason: string): void;
}

interface PayloadReader {
  payload(data: Buffer, from: number, to: number, starts: boolean, filled: boolean): void;
  lost(): void;
  flush?(): void;
}

interface Lane {
  readonly reader: PayloadReader;
  continuity: ContinuityCheck;
  /** undefined for tables. */
  readonly stream?: ElementaryStream;
}

/**
 * Extracts the streams of one program from MPEG-TS (ISO/IEC 13818-1): the first in the PAT that has audio or video.
 * Accepts any bytes without throwing; problems are reported as `fault`.
 */
export class TsDemuxer {
  readonly #events: DemuxerEvents;
  readonly #packets: PacketReader;
  readonly #choice: ProgramChoice;
  readonly #lanes = new Map<number, Lane>();
  #streams: readonly ElementaryStream[] = [];
  #reported: string | undefined;
  #pcrPid: number = PID.null;

  constructor(events: DemuxerEvents) {
    this.#events = events;
    this.#packets = new PacketReader({
      packet: (data, at) => this.#packet(data, at),
      garbage: () => events.fault('bytes that are not transport packets'),
    });
    this.#choice = new ProgramChoice({ program: (map) => this.#program(map), fault: events.fault });
    this.#lanes.set(
      PID.pat,
      this.#tableLane((section) => this.#follow(this.#choice.pat(section))),
    );
  }

  /** @param data any portion of the bytes; not kept */
  push(data: Buffer): void {
    this.#packets.push(data);
  }

  /** Emits units that are complete but for the beginning of the next, since nothing follows. */
  flush(): void {
    for (const { reader } of this.#lanes.values()) reader.flush?.();
  }

  /** Notes that bytes are missing here, maybe more packets than counters show. */
  lost(): void {
    for (const lane of this.#lanes.values()) this.#lost(lane);
  }

  /** Notes that what follows does not go on from here, counters included. */
  restart(): void {
    this.lost();
    for (const lane of this.#lanes.values()) lane.continuity = new ContinuityCheck();
  }

  #packet(data: Buffer, at: number): void {
    const pid = pidOf(data, at);
    if (hasError(data, at)) {
      this.#events.fault('transport packets marked as damaged');
      return;
    }
    if (pid === this.#pcrPid && this.#events.clock !== undefined) {
      const pcr = pcrOf(data, at);
      if (pcr !== undefined) this.#events.clock(pcr);
    }
    const lane = this.#lanes.get(pid);
    if (lane === undefined) return;
    const verdict = lane.continuity.check(data, at);
    if (verdict === 'repeated') return;
    if (verdict === 'lost') {
      this.#events.gap?.();
      this.#events.fault('transport packets were lost');
      this.#lost(lane);
    } else if (isDiscontinuity(data, at)) {
      // later data has another origin
      lane.reader.flush?.();
    }
    if (!hasPayload(data, at)) return;
    if (isScrambled(data, at)) {
      this.#events.fault('scrambled transport packets');
      this.#lost(lane);
      return;
    }
    const from = payloadStart(data, at);
    const to = at + PACKET_BYTES;
    if (from < to) lane.reader.payload(data, from, to, startsUnit(data, at), isFilled(data, at));
  }

  #lost({ reader, stream }: Lane): void {
    reader.lost();
    if (stream !== undefined) this.#events.lost(stream);
  }

  #tableLane(section: (data: Buffer) => void): Lane {
    const reader = new SectionReader({ section, fault: (reason) => this.#events.fault(reason) });
    return { reader, continuity: new ContinuityCheck() };
  }

  #follow(pids: ReadonlySet<number> | undefined): void {
    if (pids === undefined) return;
    for (const [pid, { stream }] of this.#lanes) {
      if (pid !== PID.pat && stream === undefined && !pids.has(pid)) this.#lanes.delete(pid);
    }
    for (const pid of pids) {
      if (this.#lanes.has(pid)) continue;
      this.#lanes.set(
        pid,
        this.#tableLane((section) => this.#choice.pmt(pid, section)),
      );
    }
  }

  #program(map: ProgramMap): void {
    this.#pcrPid = map.pcrPid;
    const all = elementaryStreams(map).filter(({ pid }, i, list) => list.findIndex((other) => other.pid === pid) === i);
    const streams = all
      .flatMap((stream) => ('form' in stream && this.#isFree(stream.pid) ? this.#known(stream) : []))
      .slice(0, MAX_STREAMS);
    const unknown = all.flatMap((stream) => ('unsupported' in stream ? stream : []));
    const text = JSON.stringify([streams, unknown]);
    if (text === this.#reported) return;
    this.#reported = text;
    for (const { pid } of this.#streams) {
      if (streams.includes(this.#lanes.get(pid)?.stream as ElementaryStream)) continue;
      this.#lanes.get(pid)?.reader.flush?.();
      this.#lanes.delete(pid);
    }
    this.#streams = streams;
    for (const stream of streams)
      if (!this.#lanes.has(stream.pid)) this.#lanes.set(stream.pid, this.#streamLane(stream));
    this.#events.streams(streams, unknown);
  }

  #isFree(pid: number): boolean {
    return pid !== PID.null && (!this.#lanes.has(pid) || this.#lanes.get(pid)?.stream !== undefined);
  }

  /** @returns the known object of an unchanged stream */
  #known(stream: ElementaryStream): ElementaryStream {
    const known = this.#lanes.get(stream.pid)?.stream;
    return known !== undefined && JSON.stringify(known) === JSON.stringify(stream) ? known : stream;
  }

  #streamLane(stream: ElementaryStream): Lane {
    const { fault, pes, section, lost } = this.#events;
    const continuity = new ContinuityCheck();
    if (stream.form === 'SCTE-35') {
      return { stream, continuity, reader: new SectionReader({ section: (data) => section(stream, data), fault }) };
    }
    const reader = new PesReader(stream.kind, {
      pes: (header, payload) => pes(stream, header, payload),
      damaged: (reason) => {
        fault(reason);
        lost(stream);
      },
    });
    return { stream, continuity, reader };
  }
}
