import { randomBytes } from 'node:crypto';
import type { LlhlsPublisherConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { Reader } from '../../core/reader.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Track } from '../../core/track.ts';
import { FaultLog, type Logger } from '../../log.ts';
import { isSkippable, type ChunklistForm, type ChunklistOptions, type RenditionReport } from '../../packaging/playlist.ts';
import { Segmenter } from '../../packaging/segmenter.ts';
import type { Init, Part, Segment } from '../../packaging/segment.ts';
import type { TrackPackager } from '../../packaging/track-packager.ts';
import { buildMaster } from './master.ts';
import { fileNames } from './names.ts';
import { ceiling, Rendition, type ChunklistContext } from './rendition.ts';
import { Players } from './session.ts';
import type { Text } from './text.ts';
import { renditionsOf, variants } from './variants.ts';
import type { Outcome } from './waiters.ts';

/** What a child file name stands for. */
export type Resource =
  | { readonly kind: 'chunklist'; readonly rendition: Rendition }
  | { readonly kind: 'part' | 'segment' | 'init'; readonly rendition: Rendition; readonly body: readonly Buffer[] }
  /** The part that comes next: it is told of before it exists. */
  | { readonly kind: 'hint'; readonly rendition: Rendition; readonly msn: number; readonly part: number };

const TICK_MS = 500;
/** Targets after which a request that waits is given up, and a silent player counts as gone. */
const PATIENCE_TARGETS = 3;
const MAX_PATIENCE_MS = 60_000;
/** Players that wait for a complete segment need not wait long when a stream starts. */
const FIRST_SEGMENT_SECONDS = 1;
const MAX_WAITING = 20_000;
/** Playlists wait so long for renditions that have just been told of: players load them but once. */
const ALL_STARTED_MS = 5000;

/** LL-HLS of one output stream: its files by name, its playlists, its players. */
export class LlhlsStream {
  readonly output: OutputStream;
  readonly application: Application;
  readonly config: LlhlsPublisherConfig;
  readonly players: Players;
  readonly #segmenter: Segmenter;
  readonly #faults: FaultLog;
  readonly #reader: Reader;
  readonly #timer: NodeJS.Timeout;
  readonly #streamKey: string;
  readonly #query: string;
  readonly #renditions = new Map<number, Rendition>();
  readonly #files = new Map<string, Resource>();
  #edition = 0;
  /** Milliseconds since the epoch until which playlists wait for renditions that have brought nothing. */
  #patientUntil = 0;
  /** When encoders that had rested were last asked to go on. */
  #wokenAt = 0;
  #closed = false;
  readonly #setTracks = (tracks: readonly Track[]) => this.#update(tracks);

  constructor(output: OutputStream, application: Application, config: LlhlsPublisherConfig, log: Logger, tokenKey: Buffer) {
    this.output = output;
    this.application = application;
    this.config = config;
    this.players = new Players(output, tokenKey, `${application.internalName}/${output.name}`);
    this.#faults = new FaultLog(log);
    this.#streamKey = config.originMode ? nameHash(output.name) : randomKey();
    this.#query = defaultQuery(config);
    const { chunkDuration, segmentDuration, segmentCount } = config;
    const firstMsn = config.serverTimeBasedSegmentNumbering ? Math.floor(Date.now() / (segmentDuration * 1000)) : 0;
    const firstSegmentDuration = Math.min(FIRST_SEGMENT_SECONDS, segmentDuration);
    this.#segmenter = new Segmenter(
      { chunkDuration, segmentDuration, firstSegmentDuration, segmentCount, firstMsn },
      log,
      this.#faults,
    );
    this.#update(output.tracks);
    output.on('tracks', this.#setTracks);
    this.#reader = output.read({ packet: (packet) => this.#segmenter.push(packet) });
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
  }

  /** What a child file name stands for; undefined for none of this stream's. */
  file(name: string): Resource | undefined {
    return this.#files.get(name);
  }

  /**
   * What somebody who asks for a playlist would play: nothing, not yet, or all of its tracks that come. Encoders that
   * rest are asked to go on, and waited for: players load playlists but once.
   */
  state(playlist: Playlist): 'empty' | 'starting' | 'started' {
    if (this.output.resting) this.#wake();
    const renditions = renditionsOf(variants(playlist, [...this.#renditions.values()]));
    if (renditions.length === 0) return 'empty';
    const started = renditions.filter((rendition) => this.#isStarted(rendition)).length;
    if (started === renditions.length) return 'started';
    return started > 0 && Date.now() >= this.#patientUntil ? 'started' : 'starting';
  }

  /**
   * A master playlist for one player.
   * @param token the player's path element; undefined for children without one
   * @param query what the player asked with, without `?`, handed on to the children
   */
  master(playlist: Playlist, token: string | undefined, query: string): string {
    const prefix = childPrefix(playlist.options.hlsChunklistPathDepth, this.application.name, this.output.name);
    const path = token === undefined ? prefix : `${prefix}${token}/`;
    const handedOn = query === '' ? '' : `${this.#query === '' ? '?' : '&'}${query}`;
    const started = [...this.#renditions.values()].filter((rendition) => rendition.started);
    return buildMaster(variants(playlist, started), {
      output: this.output,
      targetDuration: this.#segmenter.targetDuration,
      uri: (rendition) => `${path}${rendition.names.chunklist()}${handedOn}`,
    });
  }

  chunklist(rendition: Rendition, form: ChunklistForm): Text {
    return rendition.chunklist(form, this.#context());
  }

  /**
   * Waits until a rendition has come so far.
   * @returns undefined when too many wait already
   */
  wait(
    rendition: Rendition,
    ready: () => boolean,
    onCancel: (cancel: () => void) => void,
  ): Promise<Outcome> | undefined {
    let waiting = 0;
    for (const { waiters } of this.#renditions.values()) waiting += waiters.size;
    if (waiting >= MAX_WAITING) return undefined;
    return rendition.waiters.wait(ready, Math.min(this.#patienceMs, MAX_PATIENCE_MS), onCancel);
  }

  /** Ends every player and every wait. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    this.#reader.close();
    this.output.off('tracks', this.#setTracks);
    for (const rendition of this.#renditions.values()) rendition.close();
    this.players.close();
    this.#faults.close();
    this.#files.clear();
  }

  get #patienceMs(): number {
    return PATIENCE_TARGETS * this.#segmenter.targetDuration * 1000;
  }

  #tick(): void {
    const now = Date.now();
    for (const { waiters } of this.#renditions.values()) waiters.expire(now);
    this.players.expire(now - this.#patienceMs);
  }

  #update(tracks: readonly Track[]): void {
    const added = this.#segmenter.setTracks(tracks);
    for (const [id, rendition] of this.#renditions) {
      if (this.#segmenter.packagers.get(id) !== rendition.packager) this.#drop(id, rendition);
    }
    for (const packager of added) this.#add(packager);
    if (added.length > 0) this.#patientUntil = Date.now() + ALL_STARTED_MS;
    this.#edition++;
  }

  #add(packager: TrackPackager): void {
    const { track, window, init } = packager;
    const names = fileNames(track.id, track.type, this.#streamKey, this.#query);
    const rendition = new Rendition(packager, names);
    const putInit = ({ version, data }: Init) => {
      this.#put(names.init(version), { kind: 'init', rendition, body: [data] });
    };
    this.#renditions.set(track.id, rendition);
    this.#put(names.chunklist(), { kind: 'chunklist', rendition });
    putInit(init);
    window.on('init', putInit);
    window.on('part', (segment, part) => this.#onPart(rendition, segment, part));
    window.on('complete', (segment) => this.#onComplete(rendition, segment));
    window.on('evicted', (segment) => this.#onEvicted(rendition, segment));
  }

  #drop(id: number, rendition: Rendition): void {
    this.#renditions.delete(id);
    rendition.packager.window.removeAllListeners();
    for (const [name, resource] of this.#files) if (resource.rendition === rendition) this.#files.delete(name);
    rendition.close();
  }

  #onPart(rendition: Rendition, { msn }: Segment, { index, data }: Part): void {
    const { names, waiters } = rendition;
    this.#put(names.part(msn, index), { kind: 'part', rendition, body: [data] });
    rendition.newestAt = Date.now();
    this.#putHint(rendition, msn, index + 1);
    if (index === 0 && this.#patientUntil > 0) this.#noteStart();
    this.#edition++;
    waiters.check();
  }

  #wake(): void {
    this.#wokenAt = Date.now();
    this.#patientUntil = this.#wokenAt + ALL_STARTED_MS;
    this.output.emit('wanted');
  }

  /** What an encoder put out before it rested is old. */
  #isStarted({ started, newestAt }: Rendition): boolean {
    return started && newestAt >= this.#wokenAt;
  }

  #noteStart(): void {
    const all = [...this.#renditions.values()];
    const started = all.filter((rendition) => this.#isStarted(rendition));
    if (started.length === all.length) this.#patientUntil = 0;
    else if (started.length === 1 && started[0]?.packager.window.kept.length === 0) {
      this.#patientUntil = Date.now() + ALL_STARTED_MS;
    }
  }

  #onComplete(rendition: Rendition, { msn, parts, gap }: Segment): void {
    const { names, waiters } = rendition;
    this.#files.delete(pathOf(names.part(msn, parts.length)));
    if (!gap) this.#put(names.segment(msn), { kind: 'segment', rendition, body: parts.map(({ data }) => data) });
    this.#putHint(rendition, msn + 1, 0);
    this.#edition++;
    waiters.check();
  }

  #onEvicted({ names, packager: { window } }: Rendition, { msn, parts, init }: Segment): void {
    this.#files.delete(pathOf(names.segment(msn)));
    for (const { index } of parts) this.#files.delete(pathOf(names.part(msn, index)));
    const inUse = window.open?.init === init || window.kept.some((segment) => segment.init === init);
    if (!inUse) this.#files.delete(pathOf(names.init(init.version)));
  }

  #putHint(rendition: Rendition, msn: number, part: number): void {
    this.#put(rendition.names.part(msn, part), { kind: 'hint', rendition, msn, part });
  }

  #put(name: string, resource: Resource): void {
    this.#files.set(pathOf(name), resource);
  }

  #context(): ChunklistContext {
    return {
      edition: this.#edition,
      options: this.#options(),
      reports: (except) => {
        const reports: RenditionReport[] = [];
        for (const rendition of this.#renditions.values()) {
          const report = rendition === except ? undefined : rendition.report();
          if (report !== undefined) reports.push(report);
        }
        return reports;
      },
    };
  }

  #options(): Omit<ChunklistOptions, 'partTarget'> {
    const { chunkDuration, partHoldBack, segmentDuration, segmentCount, enablePreloadHint } = this.config;
    const { targetDuration, partTarget } = this.#segmenter;
    const target = ceiling(partTarget);
    const holdBack = partHoldBack ?? 3 * chunkDuration;
    return {
      targetDuration,
      partHoldBack: Math.max(holdBack, Math.max(2, Math.min(3, holdBack / chunkDuration)) * target),
      preloadHint: enablePreloadHint,
      skippable: isSkippable(segmentDuration * segmentCount, targetDuration),
    };
  }
}

/** A file's name without the query that stands behind it in playlists. */
function pathOf(name: string): string {
  const query = name.indexOf('?');
  return query < 0 ? name : name.slice(0, query);
}

/** In front of a child's name, by HLSChunklistPathDepth (facts/05-hls.md). */
function childPrefix(depth: number, application: string, stream: string): string {
  const app = encodeURIComponent(application);
  const name = encodeURIComponent(stream);
  switch (depth) {
    case 0:
      return '';
    case 1:
      return `../${name}/`;
    case 2:
      return `../../${app}/${name}/`;
    default:
      return `/${app}/${name}/`;
  }
}

function defaultQuery({ defaultQueryString }: LlhlsPublisherConfig): string {
  const pairs = defaultQueryString.map(({ key, value }) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`);
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

const KEY_CHARS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678901';

/** Eight characters that tell one run of a stream from the next. */
function randomKey(): string {
  return Array.from(randomBytes(8), (byte) => KEY_CHARS[byte % KEY_CHARS.length]).join('');
}

/** FNV-1a of the stream's name: the same on every origin. */
function nameHash(name: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return String(hash);
}
