import { resolve } from 'node:path';
import { ConfigError } from '../../../config/config-error.ts';
import { drmOf, readDrmInfo, type DrmEntry, type DrmNames } from '../../../config/drm-info.ts';
import type { HlsPublisherConfig, LlhlsPublisherConfig } from '../../../config/model.ts';
import type { Logger } from '../../../log/log.ts';

/**
 * Reads how a stream is encrypted, when it starts.
 * @param folder of Server.xml
 * @returns undefined for a stream in clear: without DRM, or without an entry; `unusable` where the file cannot tell
 */
export function drmOfStream(
  config: HlsPublisherConfig | LlhlsPublisherConfig,
  folder: string,
  names: DrmNames,
  log: Logger,
): DrmEntry | undefined | 'unusable' {
  if (!('drm' in config) || config.drm?.enable !== true) return undefined;
  try {
    const entry = drmOf(readDrmInfo(resolve(folder, config.drm.infoFile)), names);
    if (entry === undefined && config.drm.refuseClear) {
      log.error('the stream is not published: no entry of the DRM file matches it, and RefuseClear is on');
      return 'unusable';
    }
    if (entry === undefined) log.warn('the stream is published in clear: no entry of the DRM file matches it');
    if (entry !== undefined && config.dvr?.enable === true)
      log.warn('players cannot rewind this stream: DVR does not work with DRM');
    return entry;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.error({ reason: error.message }, 'the stream is not published: its DRM file cannot be used');
    return 'unusable';
  }
}
