import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from '../../../config/config-error.ts';
import { drmOf, readDrmInfo, type DrmInfo, type DrmKeys, type DrmNames } from '../../../config/drm-info.ts';
import type { HlsPublisherConfig, LlhlsPublisherConfig } from '../../../config/model.ts';
import type { Logger } from '../../../log/log.ts';

interface ReadFile {
  readonly state: string;
  readonly info: DrmInfo;
}

/** DRM files, each read again when it has changed. */
export class DrmFiles {
  readonly #folder: string;
  readonly #read = new Map<string, ReadFile>();

  /** @param folder of Server.xml */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Keys that a file has for a stream; undefined where no entry matches it. @throws ConfigError */
  find(infoFile: string, names: DrmNames): DrmKeys | undefined {
    const path = resolve(this.#folder, infoFile);
    const facts = statSync(path, { throwIfNoEntry: false });
    const state = facts === undefined ? '' : `${facts.mtimeMs} ${facts.ctimeMs} ${facts.size} ${facts.ino}`;
    let file = this.#read.get(path);
    if (file === undefined || file.state !== state) {
      this.#read.delete(path);
      this.#read.set(path, (file = { state, info: readDrmInfo(path) }));
    }
    return drmOf(file.info, names);
  }
}

/** Encryption of a stream. */
export interface StreamDrm {
  readonly keys: DrmKeys;
  /** Reads the present keys. @throws ConfigError */
  readonly read: () => DrmKeys | undefined;
  /** Seconds; 0: keys rotate on request only. */
  readonly period: number;
}

/**
 * Finds how a stream is encrypted, when it starts.
 * @returns undefined for a stream in clear: without DRM, or without an entry; `unusable` where the file cannot tell
 */
export function drmOfStream(
  config: HlsPublisherConfig | LlhlsPublisherConfig,
  files: DrmFiles,
  names: DrmNames,
  log: Logger,
): StreamDrm | undefined | 'unusable' {
  if (!('drm' in config) || config.drm?.enable !== true) return undefined;
  const { infoFile, keyRotationPeriod: period, refuseClear } = config.drm;
  try {
    const read = (): DrmKeys | undefined => files.find(infoFile, names);
    const keys = read();
    if (keys === undefined && refuseClear) {
      log.error('the stream is not published: no entry of the DRM file matches it, and RefuseClear is on');
      return 'unusable';
    }
    if (keys === undefined) log.warn('the stream is published in clear: no entry of the DRM file matches it');
    return keys && { keys, read, period };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.error({ reason: error.message }, 'the stream is not published: its DRM file cannot be used');
    return 'unusable';
  }
}
