import type { HlsPublisherConfig } from '../../../config/model.ts';
import type { Application } from '../../../core/application.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import type { Logger } from '../../../log/log.ts';
import type { KeyCounts } from '../answer/counts.ts';
import { DrmFiles, drmOfStream } from './drm-of-stream.ts';
import { FileKeys } from './file-keys.ts';
import type { SavedKey } from './key-rotation.ts';
import { KeyServer, type KeyServerConfig } from './key-server.ts';
import type { StreamDrm } from './packaged-stream.ts';
import { ServerKeys } from './server-keys.ts';

export interface NewStream {
  readonly output: OutputStream;
  readonly application: Application;
  readonly config: HlsPublisherConfig;
  /** Key of the stream that this one continues. */
  readonly saved: SavedKey | undefined;
  readonly log: Logger;
}

/** Finds the keys of new streams, some of which have to wait for a key server. */
export class StreamKeys {
  readonly #files: DrmFiles;
  readonly #counts: KeyCounts;
  readonly #servers = new WeakMap<KeyServerConfig, KeyServer>();
  /** Streams that wait, by the names of application and stream. */
  readonly #waiting = new Map<string, AbortController>();

  /** @param folder of Server.xml */
  constructor(folder: string, counts: KeyCounts) {
    this.#files = new DrmFiles(folder);
    this.#counts = counts;
  }

  /**
   * Finds the keys of a stream.
   * @param onFound called once the stream can be published: at once, or when its key is there; undefined for a stream in clear
   * @returns a promise of a stream that waits: it resolves when that has its key, has closed or was forgotten
   */
  open(stream: NewStream, onFound: (drm: StreamDrm | undefined) => void): Promise<void> | undefined {
    const { output, application, config, saved, log } = stream;
    const names = { vhost: application.vhost.name, app: application.name, stream: output.name };
    const found = drmOfStream(config, this.#files, names, log);
    if (found === 'unusable') return undefined;
    if (found !== undefined && 'server' in found) return this.#wait(stream, found.server, found.period, onFound);
    onFound(found && { source: new FileKeys({ ...found, log }, saved?.id), period: found.period });
    return undefined;
  }

  /** Ends the wait of a stream, since another one has its name. */
  forget(application: Application, name: string): void {
    this.#waiting.get(waitingName(application, name))?.abort();
  }

  /** Idempotent. */
  close(): void {
    for (const stop of this.#waiting.values()) stop.abort();
  }

  async #wait(
    { output, application, saved, log }: NewStream,
    config: KeyServerConfig,
    period: number,
    onFound: (drm: StreamDrm) => void,
  ): Promise<void> {
    const names = { vhost: application.vhost.name, app: application.name, stream: output.name };
    const name = waitingName(application, output.name);
    const stop = new AbortController();
    this.#waiting.set(name, stop);
    const onClose = (): void => stop.abort();
    output.once('close', onClose);
    const options = { server: this.#server(config), names, period, log };
    try {
      const source = await ServerKeys.open(options, saved, Date.now(), stop.signal);
      if (source === undefined || output.closed) source?.close();
      else onFound({ source, period });
    } catch (error) {
      log.error({ err: error }, 'the first key of the stream could not be fetched: the stream is not published');
    } finally {
      output.off('close', onClose);
      if (this.#waiting.get(name) === stop) this.#waiting.delete(name);
    }
  }

  #server(config: KeyServerConfig): KeyServer {
    let server = this.#servers.get(config);
    if (server === undefined) this.#servers.set(config, (server = new KeyServer(config, this.#counts)));
    return server;
  }
}

function waitingName({ internalName }: Application, name: string): string {
  return `${internalName}/${name}`;
}
