import { isPackable } from '../../../containers/fmp4/sample-entry.ts';
import type { LlhlsPublisherConfig } from '../../../config/model.ts';
import { addDefaultPlaylist } from '../master/default-playlist.ts';
import type { Media } from '../answer/played-stream.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { trackOf } from './names.ts';
import { Renditions } from './renditions.ts';

const CHILD = /^(chunklist|iframes|init|seg|part)_/;
const MEDIA_KINDS: Readonly<Record<string, Media['kind']>> = { init: 'init', seg: 'segment', part: 'part' };
const PLAYLIST = '.m3u8';

/** Low-Latency HLS (RFC 8216bis, docs/compatibility.md#hls): fragmented MP4 in parts, with separate audio and video. */
export const LLHLS: HlsForm = {
  kind: 'llhls',
  module: 'llhls',
  inTs: false,
  directives: true,
  config: ({ config }) => config.publishers.llhls,
  addDefaultPlaylist: (output) =>
    addDefaultPlaylist(output, {
      name: 'llhls_default',
      fileName: 'llhls',
      enableTsPackaging: false,
      carries: isPackable,
    }),
  package: (options) =>
    new Renditions({ ...options, config: options.application.config.publishers.llhls as LlhlsPublisherConfig }),
  mediaKind: (file) => MEDIA_KINDS[CHILD.exec(file)?.[1] ?? ''],
  rendition: trackOf,
  isChild: (file) => CHILD.test(file),
  master: (file) => (file.endsWith(PLAYLIST) && !CHILD.test(file) ? file.slice(0, -PLAYLIST.length) : undefined),
};
