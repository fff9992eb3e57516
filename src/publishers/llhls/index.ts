import type { FastifyPluginAsync } from 'fastify';
import type { CrossDomainsConfig } from '../../config/model.ts';
import { isPackable } from '../../containers/fmp4/sample-entry.ts';
import type { Application } from '../../core/application.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Track } from '../../core/track.ts';
import type { Logger } from '../../log.ts';
import { CrossDomainRules } from '../http/cors.ts';
import { llhlsRoutes } from './routes.ts';
import { LlhlsStream } from './stream.ts';

export interface LlhlsPublisherOptions {
  readonly registry: Registry;
  readonly log: Logger;
  /** Secret that session tokens are made with, the same on every node. */
  readonly tokenKey: Buffer;
  /** What applications without CrossDomains of their own have. */
  readonly crossDomains?: CrossDomainsConfig;
}

/** Packages every output stream of applications with LL-HLS, and serves it over HTTP. */
export class LlhlsPublisher {
  readonly routes: FastifyPluginAsync;
  readonly #options: LlhlsPublisherOptions;
  readonly #streams = new Map<OutputStream, LlhlsStream>();
  readonly #attach = (output: OutputStream, application: Application) => this.#open(output, application);

  constructor(options: LlhlsPublisherOptions) {
    this.#options = options;
    options.registry.on('output', this.#attach);
    this.routes = llhlsRoutes({
      registry: options.registry,
      stream: (application, name) => {
        const output = application.outputs.get(name);
        return output === undefined ? undefined : this.#streams.get(output);
      },
      crossDomains: new CrossDomainRules('llhls', options.crossDomains),
    });
  }

  /** Ends every stream's packaging and every request that waits. Idempotent. */
  close(): void {
    this.#options.registry.off('output', this.#attach);
    for (const stream of this.#streams.values()) stream.close();
    this.#streams.clear();
  }

  #open(output: OutputStream, application: Application): void {
    const config = application.config.publishers.llhls;
    if (config === undefined || output.closed) return;
    if (config.createDefaultPlaylist) addDefaultPlaylist(output);
    const { log, tokenKey } = this.#options;
    const bound = log.child({ publisher: 'llhls', stream: `${application.internalName}/${output.name}` });
    const stream = new LlhlsStream(output, application, config, bound, tokenKey);
    this.#streams.set(output, stream);
    output.once('close', () => {
      this.#streams.delete(output);
      stream.close();
    });
  }
}

const DEFAULT_PLAYLIST = 'llhls_default';
const DEFAULT_FILE_NAME = 'llhls';

/** `llhls.m3u8`, as long as a track can be packaged. One that was configured under that name stays. */
function addDefaultPlaylist(output: OutputStream): void {
  if (output.playlist(DEFAULT_FILE_NAME) === undefined) output.followTracks(defaultPlaylist);
}

/** Every picture with the first sound (facts/05-hls.md). */
function defaultPlaylist(tracks: readonly Track[]): Playlist | undefined {
  const packable = tracks.filter(isPackable);
  if (packable.length === 0) return undefined;
  const audioVariantName = packable.find(({ type }) => type === 'audio')?.name;
  const videos = new Set(packable.filter(({ type }) => type === 'video').map(({ name }) => name));
  const renditions =
    videos.size === 0
      ? [{ name: 'default', audioVariantName }]
      : [...videos].map((videoVariantName) => ({ name: videoVariantName, videoVariantName, audioVariantName }));
  return {
    name: DEFAULT_PLAYLIST,
    fileName: DEFAULT_FILE_NAME,
    options: { webrtcAutoAbr: true, webrtcAudioOnlyFallback: false, hlsChunklistPathDepth: -1, enableTsPackaging: false },
    renditions,
  };
}
