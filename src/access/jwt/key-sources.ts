import { resolve } from 'node:path';
import type { VirtualHostConfig } from '../../config/model.ts';
import { BoundedMap } from '../../lib/bounded-map.ts';
import type { Logger } from '../../log/log.ts';
import { FileKeys } from './file-keys.ts';
import type { KeySource } from './key-source.ts';
import { secretKey } from './keys.ts';
import { RemoteKeys, type FetchKeys } from './remote-keys.ts';

export type JwtConfig = NonNullable<VirtualHostConfig['jwt']>;

export interface KeySourcesOptions {
  /** Base of relative paths. */
  readonly folder: string;
  readonly fetch: FetchKeys;
  readonly log: Logger;
}

/** Sources of each kind that are known: one that is forgotten ends by itself. */
const MAX_SOURCES = 256;

/** The sources of keys for tokens. Virtual hosts with the same URL or file share one, which stays when their configuration changes. */
export class KeySources {
  readonly #options: KeySourcesOptions;
  readonly #log: Logger;
  readonly #remote = new BoundedMap<string, RemoteKeys>(MAX_SOURCES);
  readonly #files = new BoundedMap<string, FileKeys>(MAX_SOURCES);
  readonly #secrets = new WeakMap<JwtConfig, KeySource>();

  constructor(options: KeySourcesOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'jwt' });
  }

  of(config: JwtConfig): KeySource {
    const { jwksUrl, keyFile, keepKeys } = config;
    if (jwksUrl !== undefined) {
      const { fetch } = this.#options;
      const source = this.#remote.get(jwksUrl) ?? new RemoteKeys({ url: jwksUrl, fetch, log: this.#log });
      this.#remote.set(jwksUrl, source);
      return { keys: (id) => source.keys(id, keepKeys) };
    }
    if (keyFile !== undefined) {
      const path = resolve(this.#options.folder, keyFile);
      const source = this.#files.get(path) ?? new FileKeys(path, this.#log);
      this.#files.set(path, source);
      return source;
    }
    let source = this.#secrets.get(config);
    if (source === undefined) {
      const keys = [secretKey(config.secretKey ?? '')];
      source = { keys: () => keys };
      this.#secrets.set(config, source);
    }
    return source;
  }

  /** Ends what is under way. Idempotent. */
  close(): void {
    for (const source of this.#remote.values()) source.close();
  }
}
