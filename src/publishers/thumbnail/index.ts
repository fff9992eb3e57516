import type { FastifyPluginAsync } from 'fastify';
import type { Access } from '../../access/access.ts';
import type { CrossDomainsConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { CrossDomainRules } from '../hls/http/cors.ts';
import { RemoteThumbnails, type RemoteThumbnailsOptions } from './remote-thumbnails.ts';
import { newestThumbnail } from './newest-thumbnail.ts';
import { Thumbnails } from './thumbnails.ts';
import { thumbnailRoutes } from './routes.ts';

export interface ThumbnailPublisherOptions extends RemoteThumbnailsOptions {
  readonly access: Access;
  /** Rules for applications without CrossDomains of their own. */
  readonly crossDomains?: CrossDomainsConfig;
}

/** Image file with its MIME type. */
interface ImageFile {
  readonly type: string;
  readonly image: Buffer;
}

/** Keeps the newest thumbnails of every local output stream whose application enables them, and serves them over HTTP. */
export class ThumbnailPublisher {
  readonly routes: FastifyPluginAsync;
  readonly #registry: Registry;
  readonly #remote: RemoteThumbnails;
  readonly #thumbnails = new Map<OutputStream, Thumbnails>();
  readonly #attach = (output: OutputStream, application: Application) => this.#open(output, application);

  constructor(options: ThumbnailPublisherOptions) {
    const { registry, access, crossDomains } = options;
    this.#registry = registry;
    this.#remote = new RemoteThumbnails(options, this.#thumbnails);
    registry.on('output', this.#attach);
    this.routes = thumbnailRoutes({
      registry,
      access,
      thumbnails: this.#thumbnails,
      remote: this.#remote,
      crossDomains: new CrossDomainRules('thumbnail', crossDomains),
    });
  }

  /**
   * Newest thumbnail of an output stream on any node, for operators: they are not counted as viewers.
   * @returns undefined when there is no such stream
   * @throws thumbnailNotStarted, thumbnailExtension, thumbnailMissing
   */
  async newest(application: Application, stream: string, extension: string): Promise<ImageFile | undefined> {
    if (application.outputs.has(stream)) return newestThumbnail(this.#thumbnails, application, stream, extension);
    const found = await this.#remote.newest(application, stream, extension);
    return found && { type: found.answer.type, image: found.bytes };
  }

  /** Idempotent. */
  close(): void {
    this.#registry.off('output', this.#attach);
    for (const thumbnails of this.#thumbnails.values()) thumbnails.close();
    this.#thumbnails.clear();
  }

  #open(output: OutputStream, application: Application): void {
    const { thumbnail } = application.config.publishers;
    if (thumbnail === undefined || output.closed || output.input.isRelay) return;
    const thumbnails = new Thumbnails(output, thumbnail.delayBufferTimeMs);
    this.#thumbnails.set(output, thumbnails);
    output.once('close', () => {
      this.#thumbnails.delete(output);
      thumbnails.close();
    });
  }
}
