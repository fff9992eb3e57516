import { CaptionServices } from '../../../core/captions/caption-services.ts';
import type { LlhlsPublisherConfig } from '../../../config/model.ts';
import { isShared, type Playlist } from '../../../core/playlist.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import type { Packet } from '../../../core/packet.ts';
import type { SubtitleTrack } from '../../../core/track.ts';
import { isPackable } from '../../../containers/fmp4/sample-entry.ts';
import { kilnError } from '../../../errors.ts';
import type { Breaks } from '../../../packaging/breaks.ts';
import { encryptedFragments } from '../../../packaging/drm/encrypted-fragments.ts';
import { FRAGMENTS } from '../../../packaging/part-form.ts';
import { isSkippable, type ChunklistOptions, type RenditionReport } from '../../../packaging/playlist.ts';
import type { PlaylistPosition } from '../../../packaging/playlist-position.ts';
import type { Segment } from '../../../packaging/segment.ts';
import type { MediaClock } from '../../../packaging/wall-time.ts';
import { Segmenter } from '../../../packaging/segmenter.ts';
import type { TrackPackager } from '../../../packaging/track-packager.ts';
import type { SubtitlePackager } from '../../../packaging/subtitles/subtitle-packager.ts';
import { SubtitlePackagers } from '../../../packaging/subtitles/subtitle-packagers.ts';
import { Followers, type Follower } from '../answer/segment-followers.ts';
import { firstMsn } from '../package/first-msn.ts';
import type { PackageOptions } from '../package/hls-form.ts';
import { defaultQuery } from '../answer/names.ts';
import { nextEdition, type Package } from '../package/package.ts';
import { Queue, type Awaiting } from '../blocking-reload/queue.ts';
import { Readiness } from '../package/readiness.ts';
import { namedTracks, renditionsOf, variants } from '../master/variants.ts';
import { iFramesOf } from '../rewind/shelf.ts';
import { Files, type LlhlsResource } from './files.ts';
import { buildMaster } from './master.ts';
import { fileNames, subtitleNames } from './names.ts';
import { ceiling, Rendition, type AnyRendition, type RenditionContext, type SubtitleRendition } from './rendition.ts';

/** Short, since many players need a complete segment to start. */
const FIRST_SEGMENT_SECONDS = 1;

export interface RenditionsOptions extends PackageOptions {
  readonly config: LlhlsPublisherConfig;
}

/** Renditions of a stream: packages packets into files, and answers the requests that wait for them. */
export class Renditions implements Package, RenditionContext {
  readonly #files = new Files();
  readonly readiness = new Readiness(
    (playlist) => this.#renditionsOf(playlist),
    () => this.#options.onStarted(),
  );
  readonly queue = new Queue(this);
  readonly rewind: PackageOptions['rewind'];
  readonly #followers = new Followers();
  readonly continues: boolean;
  readonly #options: RenditionsOptions;
  readonly #query: string;
  readonly #keepsKey: boolean;
  readonly #segmenter: Segmenter;
  readonly #all = new Map<number, Rendition>();
  readonly #subtitlePackagers: SubtitlePackagers;
  /** By track id. */
  readonly #subtitles = new Map<number, SubtitleRendition>();
  #playlists: readonly Playlist[] = [];
  /** Renditions that share a master playlist with a rendition. */
  #peers = new Map<AnyRendition, Set<AnyRendition>>();
  #edition = nextEdition();
  #interrupted = false;
  #arrival: MediaClock | undefined;
  readonly #captions = new CaptionServices();

  constructor(options: RenditionsOptions) {
    const { config, next, keys, log, faults } = options;
    this.#options = options;
    this.rewind = options.rewind;
    this.#query = defaultQuery(config);
    this.#keepsKey = config.originMode;
    this.continues = next !== undefined;
    const { chunkDuration, segmentDuration, segmentCount } = config;
    const firstSegmentDuration = Math.min(FIRST_SEGMENT_SECONDS, segmentDuration);
    this.#segmenter = new Segmenter(
      keys === undefined ? FRAGMENTS : encryptedFragments(keys),
      {
        chunkDuration,
        segmentDuration,
        firstSegmentDuration,
        segmentCount,
        firstMsn: firstMsn(config, next),
        past: next?.past,
        breaks: options.breaks,
      },
      log,
      faults,
    );
    this.#subtitlePackagers = new SubtitlePackagers(this.#segmenter.windowLimits);
  }

  get edition(): number {
    return this.#edition;
  }

  get interrupted(): boolean {
    return this.#interrupted;
  }

  get concluded(): boolean {
    return this.#segmenter.concluded;
  }

  get progress(): PlaylistPosition {
    return this.#segmenter.progress;
  }

  get unannounced(): number {
    return this.#segmenter.unannounced;
  }

  get targetDuration(): number {
    return this.#segmenter.targetDuration;
  }

  get breaks(): Breaks {
    return this.#segmenter.breaks;
  }

  get waiting(): Awaiting['waiting'] {
    return [this.readiness, ...this.#every];
  }

  push(packet: Packet): void {
    const { track } = packet;
    if (track.type === 'subtitle') return this.#addCue(packet);
    if (track.type === 'video') this.#captions.push(packet);
    this.#segmenter.push(packet);
  }

  file(name: string): LlhlsResource | undefined {
    return this.#files.get(name);
  }

  master(playlist: Playlist, output: OutputStream, uri: (name: string) => string): string | undefined {
    if (!isShared(playlist)) throw kilnError('fileNotFound');
    // a playlist may be added to the stream without a change of tracks
    if (!this.#interrupted && !this.#playlists.includes(playlist)) this.update(output);
    const state = this.readiness.stateOf(playlist);
    if (state === 'empty') throw kilnError('fileNotFound');
    if (state === 'starting') return undefined;
    return buildMaster(
      variants(
        playlist,
        this.#renditions.filter(({ started }) => started),
      ),
      {
        output,
        targetDuration: this.targetDuration,
        captions: { services: this.#captions, trackOf: (channel) => output.input.captionTrack(channel) },
        subtitles: playlist.hidesSubtitles ? [] : [...this.#subtitles.values()].filter(({ started }) => started),
        uri: ({ names }) => uri(names.chunklist()),
        iFrames: this.rewind && (({ names }) => uri(iFramesOf(names.chunklist()))),
      },
    );
  }

  /** Packages the tracks that playlists name. Passes on unpackable tracks too, for the segmenter to log them. */
  update({ tracks, playlists, input }: OutputStream): void {
    this.#interrupted = false;
    this.#arrival = input.arrival;
    this.#playlists = playlists.filter(isShared);
    if (this.concluded) return;
    const named = new Set(namedTracks(tracks, this.#playlists));
    const packaged = tracks.filter((track) => named.has(track) || !isPackable(track));
    const added = this.#segmenter.setTracks(packaged, input.arrival);
    for (const [id, rendition] of this.#all) {
      if (this.#segmenter.packagers.get(id) !== rendition.packager) this.#drop(id, rendition);
    }
    for (const packager of added) this.#add(packager);
    this.#updateSubtitles(tracks.filter((track) => track.type === 'subtitle'));
    if (added.length > 0) this.readiness.expect();
    this.#findPeers();
    this.#edition = nextEdition();
    this.readiness.check();
  }

  interrupt(): void {
    this.#interrupted = true;
    this.#segmenter.finish();
    this.#followers.end();
    this.queue.interrupt();
  }

  conclude(urgent: boolean): void {
    this.#segmenter.conclude(urgent, () => {
      this.#files.conclude();
      for (const rendition of this.#every) this.#advance(rendition);
      this.#followers.end();
      this.#options.onProgress();
    });
  }

  follow(follower: Follower): () => void {
    const lists = this.#every.map((rendition) => ({
      listed: rendition.packager.window.listed,
      kept: rendition.packager.window.kept,
      followed: (segment: Segment) => rendition.followed(segment),
    }));
    const unfollow = this.#followers.add(follower, lists);
    if (this.concluded || this.#interrupted) this.#followers.end();
    return unfollow;
  }

  close(): void {
    this.#segmenter.finish();
    this.#followers.end();
  }

  chunklistOptions(): Omit<ChunklistOptions, 'partTarget'> {
    const { chunkDuration, partHoldBack, segmentDuration, segmentCount, enablePreloadHint } = this.#options.config;
    const { targetDuration, partTarget } = this.#segmenter;
    const target = ceiling(partTarget);
    const holdBack = partHoldBack ?? 3 * chunkDuration;
    return {
      targetDuration,
      partHoldBack: Math.max(holdBack, Math.max(2, Math.min(3, holdBack / chunkDuration)) * target),
      preloadHint: enablePreloadHint,
      skippable: isSkippable(segmentDuration * segmentCount, targetDuration),
      ended: this.concluded,
    };
  }

  reports(except: AnyRendition): RenditionReport[] {
    const reports: RenditionReport[] = [];
    for (const rendition of this.#peers.get(except) ?? []) {
      const report = rendition.report();
      if (report !== undefined) reports.push(report);
    }
    return reports;
  }

  get #every(): AnyRendition[] {
    return [...this.#all.values(), ...this.#subtitles.values()];
  }

  get #renditions(): Rendition[] {
    return [...this.#all.values()];
  }

  #renditionsOf(playlist: Playlist): Rendition[] {
    return renditionsOf(variants(playlist, this.#renditions));
  }

  /** Finds the renditions that a chunklist reports: all to which any of its players may switch, by the playlists that name it. */
  #findPeers(): void {
    this.#peers = new Map(this.#every.map((rendition) => [rendition, new Set()]));
    for (const playlist of this.#playlists) {
      const subtitles = playlist.hidesSubtitles ? [] : this.#subtitles.values();
      const together = [...this.#renditionsOf(playlist), ...subtitles];
      for (const rendition of together) {
        for (const other of together) if (other !== rendition) this.#peers.get(rendition)?.add(other);
      }
    }
  }

  #add(packager: TrackPackager): void {
    const { track, window } = packager;
    const { streamKey, onProgress } = this.#options;
    const names = fileNames({
      trackId: track.id,
      type: track.type,
      streamKey,
      keepsKey: this.#keepsKey,
      query: this.#query,
    });
    const rendition = new Rendition(packager, names, this);
    this.#all.set(track.id, rendition);
    this.#files.add(rendition);
    window.on('init', onProgress);
    window.on('part', (segment, { index }) => {
      rendition.newestAt = Date.now();
      this.#noteDelay(segment, rendition.newestAt);
      if (index === 0) this.readiness.note(this.#renditions);
      this.#advance(rendition);
    });
    window.on('complete', (segment) => {
      this.#advance(rendition);
      onProgress();
      if (this.#followers.size > 0) this.#followers.segment(rendition.followed(segment));
    });
  }

  /** @param now milliseconds since the epoch */
  #noteDelay({ presentation, duration }: Segment, now: number): void {
    const arrived = this.#arrival?.at(presentation + duration) ?? Infinity;
    if (Number.isFinite(arrived)) this.#options.partDelay?.add(Math.max(0, now - arrived) / 1000);
  }

  #addCue(packet: Packet): void {
    if (!this.#subtitlePackagers.push(packet))
      this.#options.faults.count('HLS: dropped subtitles, because too many are shown at a time');
  }

  #updateSubtitles(tracks: readonly SubtitleTrack[]): void {
    const { added, dropped } = this.#subtitlePackagers.set(
      tracks,
      this.#renditions.map(({ packager }) => packager),
    );
    for (const { track } of dropped) this.#dropSubtitles(track.id);
    for (const packager of added) this.#addSubtitles(packager);
  }

  #addSubtitles(packager: SubtitlePackager): void {
    const { id } = packager.track;
    const names = subtitleNames({ trackId: id, streamKey: this.#options.streamKey, query: this.#query });
    const rendition = new Rendition(packager, names, this);
    this.#subtitles.set(id, rendition);
    this.#files.add(rendition);
    packager.window.on('part', () => {
      rendition.newestAt = Date.now();
      this.#advance(rendition);
    });
    packager.window.on('complete', (segment) => {
      this.#advance(rendition);
      if (this.#followers.size > 0) this.#followers.segment(rendition.followed(segment));
    });
  }

  #dropSubtitles(id: number): void {
    const rendition = this.#subtitles.get(id);
    if (rendition === undefined) return;
    this.#subtitles.delete(id);
    this.#files.drop(rendition);
    rendition.waiters.close();
  }

  #advance(rendition: AnyRendition): void {
    this.#edition = nextEdition();
    rendition.advance();
  }

  #drop(id: number, rendition: Rendition): void {
    this.#all.delete(id);
    this.#files.drop(rendition);
    rendition.waiters.close();
  }
}
