import { pat, pes, pmt, TsWriter, type PesOptions, type PmtStream } from './ts-build.ts';
import { demuxTs, encodeTs, PATTERN, TONE, X264 } from './ts-media.ts';

const PMT_PID = 4096;
export const VIDEO: PmtStream = { pid: 256, type: 0x1b };
export const AUDIO: PmtStream = { pid: 257, type: 0x0f };

/** Payloads of PES packets out of ffmpeg, 25 pictures a second with a key frame each second, and sound. */
export interface SceneMedia {
  readonly video: readonly Buffer[];
  readonly audio: readonly Buffer[];
}

let media: Promise<SceneMedia> | undefined;

export function sceneMedia(): Promise<SceneMedia> {
  media ??= encodeTs([...PATTERN, ...TONE, ...X264, '-c:a', 'aac', '-pes_payload_size', '0']).then((ts) => {
    const { pes: packets } = demuxTs(ts);
    const of = (pid: number) => packets.filter((packet) => packet.pid === pid).map(({ payload }) => payload);
    return { video: of(256), audio: of(257) };
  });
  return media;
}

/** A sender whose every packet a test decides on. */
export class TsScene {
  readonly #push: (packet: Buffer) => void;
  readonly #writers = new Map<number, TsWriter>();
  #version = 0;

  constructor(push: (packet: Buffer) => void) {
    this.#push = push;
  }

  on(pid: number): TsWriter {
    const writer = this.#writers.get(pid) ?? new TsWriter(pid);
    this.#writers.set(pid, writer);
    return writer;
  }

  /** Tells what is sent from now on. */
  tables(streams: readonly PmtStream[]): void {
    const version = this.#version++ & 0x1f;
    this.send([...this.on(0).section(pat({ 1: PMT_PID })), ...this.on(0x1fff).unit(Buffer.alloc(184))]);
    this.send(this.on(PMT_PID).section(pmt(1, streams, { version })));
  }

  pes(pid: number, payload: Buffer, options: PesOptions): void {
    this.send(this.on(pid).unit(pes(payload, options)));
  }

  send(packets: readonly Buffer[]): void {
    for (const packet of packets) this.#push(packet);
  }
}
