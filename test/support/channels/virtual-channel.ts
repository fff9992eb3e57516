import { pino } from 'pino';
import { VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { AudioTrack, Track, VideoTrack } from '../../../src/core/track.ts';
import { Channel } from '../../../src/channels/scheduled/channel.ts';
import type { ChannelClock } from '../../../src/channels/scheduled/clock.ts';
import type { ItemSource } from '../../../src/channels/scheduled/item-source.ts';
import { UnitQueue } from '../../../src/channels/scheduled/unit-queue.ts';
import type { Item, Program, ScheduleSpec } from '../../../src/channels/scheduled/spec.ts';

/** Time that passes when a test says so. */
export class VirtualClock implements ChannelClock {
  #now = 0;
  #wall: number;
  #timers: { at: number; call: () => void }[] = [];

  /** @param wall milliseconds since the epoch at the beginning */
  constructor(wall: number) {
    this.#wall = wall;
  }

  wall(): number {
    return Math.floor(this.#wall + this.#now);
  }

  monotonic(): number {
    return this.#now;
  }

  after(ms: number, call: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), call };
    let index = this.#timers.length;
    while (index > 0 && (this.#timers[index - 1]?.at ?? 0) > timer.at) index--;
    this.#timers.splice(index, 0, timer);
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  }

  /** Somebody sets the clock of the system. */
  set(by: number): void {
    this.#wall += by;
  }

  run(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const timer = this.#timers[0];
      if (timer === undefined || timer.at > until) break;
      this.#timers.shift();
      this.#now = Math.max(this.#now, timer.at);
      timer.call();
    }
    this.#now = until;
  }
}

/** What a made-up media file is like; times in milliseconds. */
export interface FakeFile {
  /** What it really has. */
  readonly length: number;
  /** What is said of it; the length where it is not given. */
  readonly told?: number;
  readonly frameMs?: number;
  readonly gopMs?: number;
  /** Frames of sound have so many samples of 48 kHz; 0: there are none. */
  readonly samples?: number;
  readonly width?: number;
  readonly hasVideo?: boolean;
  /** It cannot be opened. */
  readonly failure?: string;
  /** Its length is told by nothing but its end. */
  readonly isUntold?: boolean;
  /** Reading fails there. */
  readonly failsAt?: number;
  /** Nothing more is read of it from there on, until it is `undefined`. */
  stallsAt?: number | undefined;
  readonly opensInMs?: number;
}

const AHEAD_MS = 2000;

/** A file that is there at once, and never read further ahead than a real one. */
class FakeSource implements ItemSource {
  readonly queue = new UnitQueue();
  readonly isLive = false;
  state: ItemSource['state'] = 'opening';
  failure: string | undefined;
  readonly #file: FakeFile;
  readonly #video: VideoTrack;
  readonly #audio: AudioTrack;
  #frame: number;
  #sound: number;
  closed = false;
  readonly item: Item;

  constructor(item: Item, file: FakeFile, position: number, clock: ChannelClock, onChange: () => void) {
    this.item = item;
    this.#file = file;
    const { gopMs = 2000, frameMs = 200, samples = 4800, width = 320 } = file;
    const key = Math.floor(position / gopMs) * gopMs;
    this.#frame = Math.round(key / frameMs);
    this.#sound = samples === 0 ? 0 : Math.ceil((key * 48) / samples);
    this.#video = {
      ...{ id: 0, name: 'Video', type: 'video', codec: 'VP8', timebase: VIDEO_TIMEBASE, bypass: false, width },
      ...{ height: 180, bitrate: 0, framerate: 0, keyFrameInterval: 0 },
    };
    this.#audio = {
      ...{ id: 100, name: 'Audio', type: 'audio', codec: 'OPUS', timebase: { num: 1, den: 48_000 }, bypass: false },
      ...{ samplerate: 48_000, channels: 2, bitrate: 0 },
    };
    clock.after(file.opensInMs ?? 100, () => {
      if (this.closed) return;
      this.state = 'playing';
      if (file.failure !== undefined) {
        this.state = 'ended';
        this.failure = file.failure;
      }
      this.taken();
      onChange();
    });
  }

  taken(): void {
    if (this.state !== 'playing') return;
    const { frameMs = 200, samples = 4800, gopMs = 2000, length, failsAt = Infinity, hasVideo = true } = this.#file;
    const { stallsAt = Infinity } = this.#file;
    while (this.queue.span < AHEAD_MS) {
      const at = this.#frame * frameMs;
      const soundAt = samples === 0 ? Infinity : (this.#sound * samples) / 48;
      const next = Math.min(at, soundAt);
      if (next >= stallsAt) return;
      if (next >= Math.min(length, failsAt)) {
        this.state = 'ended';
        this.failure = next >= failsAt ? 'the disk is broken' : undefined;
        return;
      }
      if (at <= soundAt) {
        this.#frame++;
        const ticks = at * 90;
        if (!hasVideo) continue;
        const unit = { track: this.#video, dts: ticks, pts: ticks, duration: 0, key: at % gopMs === 0 };
        this.queue.push({ ...unit, data: Buffer.alloc(1), at, shownAt: at });
      } else {
        const ticks = this.#sound++ * samples;
        const unit = { track: this.#audio, dts: ticks, pts: ticks, duration: samples, key: true };
        this.queue.push({ ...unit, data: Buffer.alloc(1), at: soundAt, shownAt: soundAt });
      }
    }
  }

  close(): void {
    this.closed = true;
    this.queue.clear();
  }
}

/** A packet that a channel wrote, with the time of the wall clock, in milliseconds, and which file it is of. */
export interface Written {
  readonly wall: number;
  readonly packet: Packet;
  readonly url: string | undefined;
}

/** A channel whose files and time are made up. */
export class VirtualChannel {
  readonly clock: VirtualClock;
  readonly channel: Channel;
  readonly written: Written[] = [];
  readonly tracks: (readonly Track[])[] = [];
  readonly warnings: string[] = [];
  readonly sources: FakeSource[] = [];
  /** What was learned of them. */
  readonly lengths = new Map<string, number>();
  onPacket: ((written: Written) => void) | undefined;
  onLengthOf: ((url: string) => void) | undefined;
  measure = (): Promise<void> => Promise.resolve();

  constructor(spec: ScheduleSpec, files: Record<string, FakeFile>, wall: number) {
    this.clock = new VirtualClock(wall);
    const log = pino(
      { level: 'warn' },
      { write: (line: string) => void this.warnings.push((JSON.parse(line) as { reason?: string }).reason ?? line) },
    );
    this.channel = new Channel({
      spec,
      sink: {
        setTracks: (tracks) => void this.tracks.push(tracks),
        write: (packet) => {
          const url = this.channel.report().item?.url;
          const written = { wall: this.clock.wall(), packet, url };
          if (this.onPacket === undefined) this.written.push(written);
          else this.onPacket(written);
        },
      },
      clock: this.clock,
      lengthOf: (url) => {
        this.onLengthOf?.(url);
        const { told, length, isUntold = false } = files[url] ?? {};
        return this.lengths.get(url) ?? (isUntold ? undefined : (told ?? length));
      },
      measure: () => this.measure(),
      played: (url, length) => this.learn(url, length),
      open: (item: Item, position, onChange) => {
        const source = new FakeSource(
          item,
          files[item.url] ?? { length: 0, failure: 'it is missing' },
          position,
          this.clock,
          onChange,
        );
        this.sources.push(source);
        return source;
      },
      plays: () => {},
      log,
    });
  }

  /** Somebody finds out how long a file is. */
  learn(url: string, length: number): void {
    this.lengths.set(url, length);
    this.channel.replan(url);
  }

  get open(): number {
    return this.sources.filter(({ closed }) => !closed).length;
  }
}

export function item(url: string, more: Partial<Item> = {}): Item {
  return { url, start: 0, duration: -1, fallbackOnErr: true, forwardData: false, ...more };
}

export function schedule(programs: Program[], fallback?: Item[]): ScheduleSpec {
  return {
    stream: { bypassTranscoder: true, videoTrack: true, audioTrack: true, audioMap: [], errorToleranceDurationMs: 500 },
    ...(fallback && { fallbackProgram: { items: fallback } }),
    programs,
  };
}
