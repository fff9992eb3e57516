import type { FastifyPluginAsync } from 'fastify';
import type { Access } from '../../access/access.ts';
import type { CrossDomainsConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/stream.ts';
import { CrossDomainRules } from '../http/cors.ts';
import { PicturesElsewhere, type PicturesElsewhereOptions } from './elsewhere.ts';
import { Pictures } from './pictures.ts';
import { thumbnailRoutes } from './routes.ts';

export interface ThumbnailPublisherOptions extends PicturesElsewhereOptions {
  readonly access: Access;
  /** What applications without CrossDomains of their own have. */
  readonly crossDomains?: CrossDomainsConfig;
}

/** Keeps the newest pictures of every output stream here of applications with thumbnails, and serves them over HTTP. */
export class ThumbnailPublisher {
  readonly routes: FastifyPluginAsync;
  readonly #registry: Registry;
  readonly #pictures = new Map<OutputStream, Pictures>();
  readonly #attach = (output: OutputStream, application: Application) => this.#open(output, application);

  constructor(options: ThumbnailPublisherOptions) {
    const { registry, access, crossDomains } = options;
    this.#registry = registry;
    registry.on('output', this.#attach);
    this.routes = thumbnailRoutes({
      registry,
      access,
      pictures: this.#pictures,
      elsewhere: new PicturesElsewhere(options, this.#pictures),
      crossDomains: new CrossDomainRules('thumbnail', crossDomains),
    });
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
