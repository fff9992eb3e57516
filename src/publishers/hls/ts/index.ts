import type { HlsPublisherConfig } from '../../../config/model.ts';
import { isTsPackable } from '../../../packaging/frame-run.ts';
import { addDefaultPlaylist } from '../master/default-playlist.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { readName } from './names.ts';
import { TsPackage } from './ts-package.ts';

const MASTER = /^(?:ts:)?(.+)\.m3u8$/;

/** HLS version 3 with MPEG-TS (RFC 8216, docs/compatibility.md#hls): muxed audio and video, whole segments only. */
export const HLS: HlsForm = {
  kind: 'hlsv3',
  module: 'hls',
  inTs: true,
  directives: false,
  config: ({ config }) => config.publishers.hls,
  addDefaultPlaylist: (output) =>
    addDefaultPlaylist(output, {
      name: 'hls_default',
      fileName: 'playlist',
      enableTsPackaging: true,
      carries: isTsPackable,
    }),
  package: (options) => new TsPackage(options.application.config.publishers.hls as HlsPublisherConfig, options),
  mediaKind: (file) => (readName(file)?.msn === undefined ? undefined : 'segment'),
  rendition: (file) => {
    const variant = readName(file)?.variant;
    return variant === undefined ? undefined : `variant_${variant}`;
  },
  isChild: (file) => readName(file) !== undefined,
  master: (file) => (readName(file) === undefined ? MASTER.exec(file)?.[1] : undefined),
};
