import { isDeepStrictEqual } from 'node:util';
import type { OutputProfileConfig } from '../config/model.ts';
import { outputName } from '../config/output-name.ts';
import type { Application } from '../core/application.ts';
import { FIRST_EVENT_TRACK_ID } from '../core/event-tracks.ts';
import type { Packet } from '../core/packet.ts';
import { isShared } from '../core/playlist.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { DataTrack, ImageTrack, MediaTrack, SubtitleTrack, Track, VideoTrack } from '../core/track.ts';
import { KilnError } from '../errors.ts';
import { EncoderState, encodedTrack, inLanguage, unmadeTrack } from './encoded-track.ts';
import type { EncodedFormat, EncodeSink } from './encode.ts';
import type { Encoding } from './encoding.ts';
import type { Overlays } from './overlays.ts';
import { profilePlaylist } from './playlists.ts';
import { planTracks, type PlannedTrack } from './profile.ts';
import { raisedRate } from './rate-watch.ts';
import type { EncodeTask } from './transcoder.ts';

export interface ProfileOutputOptions {
  readonly application: Application;
  readonly overlays: Overlays | undefined;
  /** An encode failed. @param final whether it is not tried again */
  readonly onFailure: (variantName: string, reason: string, final: boolean) => void;
  /** The output stream cannot be created. Called once. */
  readonly onRefusal: (reason: string) => void;
  /** The output stream was announced, or a format changed after that. */
  readonly onFormats: () => void;
}

type EventTrack = DataTrack | SubtitleTrack;

/** A track of the output stream and its source. */
interface Entry {
  planned: PlannedTrack;
  /** Undefined until there is media. */
  track: MediaTrack | ImageTrack | undefined;
  /** Announced while `track` is undefined. */
  awaited: Track | undefined;
  readonly encode?: { readonly state: EncoderState; readonly sink: EncodeSink };
}

/** Limit of the media held until every encoder has reported its format. */
const MAX_HELD_BYTES = 32 * 1024 * 1024;
const START_TIMEOUT_MS = 5000;

/**
 * Output of one profile for one input stream. A bypassed packet is the input's, with the output's track. The output stream
 * is announced when its tracks are known; until encoders have reported them, packets are held, so that viewers start with
 * all tracks and from the first key frame.
 */
export class ProfileOutput {
  readonly #input: InputStream;
  readonly #profile: OutputProfileConfig;
  readonly #options: ProfileOutputOptions;
  readonly #name: string;
  /** Track ids by key, in order of appearance, never reused. */
  readonly #ids = new Map<string, number>();
  readonly #encodings = new Map<string, Encoding>();
  #entries: ReadonlyMap<string, Entry> = new Map();
  /** Output tracks of events and subtitles by those of the input, whatever the profile encodes. */
  #events: ReadonlyMap<EventTrack, EventTrack> = new Map();
  /** By id of the input's track. */
  readonly #eventIds = new Map<number, number>();
  #routes = new Map<Track, Track[]>();
  #output: OutputStream | undefined;
  /** Held packets; undefined once the stream is announced. */
  #held: Packet[] | undefined = [];
  #heldBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #refused = false;

  constructor(input: InputStream, profile: OutputProfileConfig, options: ProfileOutputOptions) {
    this.#input = input;
    this.#profile = profile;
    this.#options = options;
    this.#name = outputName(profile, input.name);
  }

  /** Undefined until there is a track. */
  get output(): OutputStream | undefined {
    return this.#output;
  }

  get tasks(): EncodeTask[] {
    return [...this.#entries.values()].flatMap(({ planned: { from, variantName, encoding }, encode }) => {
      if (encode === undefined || encoding === undefined) return [];
      return { job: { from, encoding: this.#drawn(variantName, encoding) }, sink: encode.sink };
    });
  }

  get announced(): boolean {
    return this.#held === undefined;
  }

  /** Whether it encodes only audio that no shared playlist names. */
  get encodesUnlistedAudioAlone(): boolean {
    const playlists = this.#output?.playlists.filter(isShared) ?? [];
    const named = new Set(playlists.flatMap(({ renditions }) => renditions.map((one) => one.audioVariantName)));
    return [...this.#entries.values()].every(
      ({ planned: { type, variantName }, encode }) =>
        encode === undefined || (type === 'audio' && !named.has(variantName)),
    );
  }

  /** Applies the profile to the input's current tracks. */
  plan(): void {
    const measured = ({ id }: Track) => this.#input.measured(id)?.framerateAvg ?? 0;
    const planned = planTracks(this.#profile, this.#input.tracks, { known: this.#encodings, measured });
    const entries = new Map(planned.map((one) => [one.key, this.#entry(one)]));
    this.#entries = entries;
    this.#output ??= entries.size > 0 ? this.#create() : undefined;
    if (this.#output === undefined) this.#entries = new Map();
    this.#routes = new Map();
    for (const {
      planned: { from },
      encode,
      track,
    } of this.#entries.values()) {
      if (encode === undefined && track !== undefined)
        this.#routes.set(from, [...(this.#routes.get(from) ?? []), track]);
    }
    const events = this.#input.tracks.filter((track) => track.type === 'data' || track.type === 'subtitle');
    this.#events = new Map(events.map((from) => [from, this.#events.get(from) ?? this.#eventTrack(from)]));
    for (const [from, track] of this.#events) this.#routes.set(from, [track]);
    this.#showTracks();
  }

  /** Applies the measured frame rates of the input. @returns whether an encode changed */
  raiseRates(rateOf: (track: VideoTrack) => number): boolean {
    let raised = false;
    for (const entry of this.#entries.values()) {
      const { key, from, encoding } = entry.planned;
      if (encoding?.type !== 'video' || from.type !== 'video') continue;
      const now = raisedRate(from, encoding, rateOf(from));
      if (now === encoding) continue;
      this.#encodings.set(key, now);
      entry.planned = { ...entry.planned, encoding: now };
      raised = true;
    }
    return raised;
  }

  /** Writes a packet of the input to its bypassed tracks. */
  pass({ track: from, dts, pts, duration, key, data }: Packet): void {
    const tracks = this.#routes.get(from);
    if (tracks === undefined) return;
    for (const track of tracks) this.#write({ track, dts, pts, duration, key, data });
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#held = [];
    this.#output = undefined;
  }

  #entry(planned: PlannedTrack): Entry {
    const { key, from, variantName: name, encoding, problem } = planned;
    const known = this.#entries.get(key);
    const place = { id: this.#id(key), name, from };
    if (problem !== undefined) {
      if (known?.planned.problem === undefined) this.#options.onFailure(name, problem, true);
      return { planned, track: undefined, awaited: unmadeTrack(place) };
    }
    if (encoding !== undefined) return this.#encoded(planned, encoding, known);
    if (known?.planned.from === from && known.encode === undefined) return known;
    return { planned, track: { ...from, id: place.id, name, source: from.id, bypass: true }, awaited: undefined };
  }

  #encoded(planned: PlannedTrack, encoding: Encoding, known: Entry | undefined): Entry {
    const { key, variantName: name } = planned;
    this.#encodings.set(key, encoding);
    if (known?.encode !== undefined) {
      const { track, awaited } = known;
      const { from } = planned;
      return Object.assign(known, {
        planned,
        track: track && inLanguage(track, from),
        awaited: awaited && inLanguage(awaited, from),
      });
    }
    const state = new EncoderState();
    const trackOf = (format?: EncodedFormat) => {
      return encodedTrack({ id: this.#id(key), name, from: entry.planned.from }, encoding, state, format);
    };
    const sink: EncodeSink = {
      started: (format) => this.#started(entry, state, format.module, trackOf(format)),
      packet: ({ dts, pts, duration, key: isKey, data }) => {
        if (entry.track !== undefined) this.#write({ track: entry.track, dts, pts, duration, key: isKey, data });
      },
      failed: (reason, final) => this.#failed(entry, state, reason, final),
    };
    const entry: Entry = { planned, track: undefined, awaited: undefined, encode: { state, sink } };
    entry.awaited = trackOf();
    return entry;
  }

  #drawn(variantName: string, encoding: Encoding): Encoding {
    const { overlays } = this.#options;
    if (overlays === undefined || encoding.type !== 'video') return encoding;
    return { ...encoding, overlays: overlays.of(this.#name, variantName, encoding) };
  }

  #started(entry: Entry, state: EncoderState, module: string, track: MediaTrack | ImageTrack): void {
    state.module = module;
    state.status = 'Ready';
    if (isDeepStrictEqual(entry.track, track)) return;
    entry.track = track;
    const { announced } = this;
    this.#showTracks();
    if (announced) this.#options.onFormats();
  }

  #failed(entry: Entry, state: EncoderState, reason: string, final: boolean): void {
    if (final || state.status !== 'Failed') this.#options.onFailure(entry.planned.variantName, reason, final);
    state.status = 'Failed';
    if (final) entry.track = undefined;
    if (final) this.#showTracks();
  }

  #showTracks(): void {
    const output = this.#output;
    if (output === undefined) return;
    if (this.#held === undefined) {
      this.#setTracks(output);
      return;
    }
    output.setAwaited([...this.#entries.values()].flatMap(({ track, awaited }) => track ?? awaited ?? []));
    this.#announceIfSettled();
  }

  #setTracks(output: OutputStream): void {
    const entries = [...this.#entries.values()];
    output.setAwaited(entries.flatMap(({ track, awaited }) => (track === undefined ? (awaited ?? []) : [])));
    const made = entries.flatMap(({ track }) => track ?? []);
    output.setTracks(made.length === 0 ? [] : [...made, ...this.#events.values()]);
  }

  #announceIfSettled(): void {
    if (this.#held === undefined) return;
    const waits = [...this.#entries.values()].some(
      ({ encode }) => encode !== undefined && encode.state.status === undefined,
    );
    if (!waits) this.#announce();
    else this.#timer ??= setTimeout(() => this.#announce(), START_TIMEOUT_MS).unref();
  }

  #announce(): void {
    clearTimeout(this.#timer);
    const output = this.#output;
    const held = this.#held;
    if (output === undefined || output.closed || held === undefined) return;
    this.#held = undefined;
    this.#setTracks(output);
    this.#options.application.announce(output);
    for (const packet of held) output.write(packet);
    this.#options.onFormats();
  }

  #write(packet: Packet): void {
    if (this.#held === undefined) {
      this.#output?.write(packet);
      return;
    }
    this.#held.push(packet);
    this.#heldBytes += packet.data.length;
    if (this.#heldBytes > MAX_HELD_BYTES) this.#announce();
  }

  #create(): OutputStream | undefined {
    try {
      const output = this.#options.application.addOutput(this.#input, this.#name);
      for (const config of this.#profile.playlists) output.followTracks((tracks) => profilePlaylist(config, tracks));
      return output;
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      if (!this.#refused) this.#options.onRefusal(`${this.#name}: ${error.message}`);
      this.#refused = true;
      return undefined;
    }
  }

  #eventTrack(from: EventTrack): EventTrack {
    const id = this.#eventIds.get(from.id) ?? FIRST_EVENT_TRACK_ID + this.#eventIds.size;
    this.#eventIds.set(from.id, id);
    return { ...from, id, source: from.id, bypass: true };
  }

  #id(key: string): number {
    const id = this.#ids.get(key) ?? this.#ids.size;
    this.#ids.set(key, id);
    return id;
  }
}
