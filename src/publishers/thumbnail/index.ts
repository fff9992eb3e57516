import type { FastifyPluginAsync } from 'fastify';
import type { Access } from '../../access/access.ts';
import type { CrossDomainsConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/stream.ts';
import { CrossDomainRules } from '../hls/http/cors.ts';
import { PicturesElsewhere, type PicturesElsewhereOptions } from './elsewhere.ts';
import { newestPicture } from './newest-picture.ts';
import { Pictures } from './pictures.ts';
import { thumbnailRoutes } from './routes.ts';

export interface ThumbnailPublisherOptions extends PicturesElsewhereOptions {
  readonly access: Access;
  /** What applications without CrossDomains of their own have. */
  readonly crossDomains?: CrossDomainsConfig;
}

/** A picture as a whole file, and its MIME type. */
interface ShownPicture {
  readonly type: string;
  readonly picture: Buffer;
}

/** Keeps the newest pictures of every output stream here of applications with thumbnails, and serves them over HTTP. */
export class ThumbnailPublisher {
  readonly routes: FastifyPluginAsync;
  readonly #registry: Registry;
  readonly #elsewhere: PicturesElsewhere;
  readonly #pictures = new Map<OutputStream, Pictures>();
  readonly #attach = (output: OutputStream, application: Application) => this.#open(output, application);

  constructor(options: ThumbnailPublisherOptions) {
    const { registry, access, crossDomains } = options;
    this.#registry = registry;
    this.#elsewhere = new PicturesElsewhere(options, this.#pictures);
    registry.on('output', this.#attach);
    this.routes = thumbnailRoutes({
      registry,
      access,
      pictures: this.#pictures,
      elsewhere: this.#elsewhere,
      crossDomains: new CrossDomainRules('thumbnail', crossDomains),
    });
  }

  /**
   * The newest picture of an output stream, whichever node has that: for operators, who are no viewers and not counted.
   * @returns undefined where there is no such stream
   * @throws thumbnailNotStarted, thumbnailExtension, thumbnailMissing
   */
  async newest(application: Application, stream: string, extension: string): Promise<ShownPicture | undefined> {
    if (application.outputs.has(stream)) return newestPicture(this.#pictures, application, stream, extension);
    const found = await this.#elsewhere.ask(application, stream, extension);
    return found && { type: found.answer.type, picture: found.bytes };
  }

  /** Idempotent. */
  close(): void {
    this.#registry.off('output', this.#attach);
    for (const pictures of this.#pictures.values()) pictures.close();
    this.#pictures.clear();
  }

  #open(output: OutputStream, application: Application): void {
    const { thumbnail } = application.config.publishers;
    if (thumbnail === undefined || output.closed || output.input.isRelay) return;
    const pictures = new Pictures(output, thumbnail.delayBufferTimeMs);
    this.#pictures.set(output, pictures);
    output.once('close', () => {
      this.#pictures.delete(output);
      pictures.close();
    });
  }
}
