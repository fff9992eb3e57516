import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { Track } from '../core/track.ts';
import type { Logger } from '../log/log.ts';
import { shownUrl } from '../protocols/outbound/shown.ts';

/**
 * Logs begin and end of streams, viewers that connect and leave, and readers that failed, in the same form for every
 * protocol.
 */
export function logStreams(registry: Registry, log: Logger): void {
  registry.on('input', (input, application) => {
    input.on('fault', (err) =>
      log.error({ err, stream: input.name }, 'a reader of the input stream failed and was detached'),
    );
    const own = { module: input.source.kind, stream: `${application.internalName}/${input.name}` };
    const since = performance.now();
    log.info(
      { event: 'stream.published', ...own, tracks: tracksText(input.tracks), ...origin(input) },
      input.source.isPulled ? 'pulled' : 'published',
    );
    input.once('close', (reason) => {
      const seconds = Math.round((performance.now() - since) / 1000);
      log.info({ event: 'stream.ended', ...own, seconds, reason }, `ended after ${seconds} s: ${reason}`);
    });
  });
  const logViewers = (output: OutputStream, application: Application): void => {
    const stream = `${application.internalName}/${output.name}`;
    output.on('joined', ({ kind, id }) => {
      log.debug({ event: 'viewer.joined', module: kind, stream, session: id }, 'viewer joined');
    });
    output.on('left', ({ kind, id, createdTime }) => {
      const seconds = Math.round((Date.now() - createdTime) / 1000);
      log.debug({ event: 'viewer.left', module: kind, stream, session: id, seconds }, `viewer left after ${seconds} s`);
    });
  };
  registry.on('output', (output) => {
    output.on('fault', (err) =>
      log.error({ err, stream: output.name }, 'a reader of the output stream failed and was detached'),
    );
  });
  registry.on('output', logViewers).on('filesViewed', logViewers);
}

/** Source of a stream: a client's address, or the pulled URL without its secrets. */
function origin({ source }: InputStream): { readonly remote?: string; readonly url?: string } {
  if (source.isPulled) return source.url === undefined ? {} : { url: shownUrl(source.url) };
  const remote = source.connection?.()?.remoteAddress;
  return remote === undefined ? {} : { remote };
}

/** `1280x720 H264 AAC` */
function tracksText(tracks: readonly Track[]): string {
  return tracks
    .flatMap((track) => {
      if (track.type === 'data' || track.type === 'subtitle') return [];
      const isSized = track.type === 'video' && track.width > 0;
      return isSized ? [`${track.width}x${track.height}`, track.codec] : [track.codec];
    })
    .join(' ');
}
