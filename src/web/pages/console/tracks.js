import { bits } from '../common.js';
import { Table } from './parts.js';

/** @import { OutputInfo, StreamInfo, TrackInfo } from '../answers.ts' */

/**
 * `where`: `input`, or the name of the output stream.
 * @typedef {{ where: string, track: TrackInfo }} TrackRow
 * @typedef {OutputInfo['playlists'][number]} Playlist
 * @typedef {{ output: string, playlist: Playlist }} PlaylistRow
 */

/**
 * Rows of the tracks of a stream.
 * @param {StreamInfo} stream
 * @returns {TrackRow[]}
 */
export function tracksOf({ input, outputs }) {
  /**
   * @param {string} where
   * @param {TrackInfo[]} tracks
   */
  const of = (where, tracks) => tracks.map((track) => ({ where, track }));
  return [...of('input', input.tracks), ...outputs.flatMap(({ name, tracks }) => of(name, tracks))];
}

/**
 * A table of tracks.
 * @returns {Table<TrackRow>}
 */
export function trackTable() {
  /** @param {TrackRow} row */
  const media = ({ track }) => track.video ?? track.audio;
  /** @param {TrackRow} row */
  const format = ({ track: { video, audio, data } }) => {
    if (video !== undefined) return `${video.width}×${video.height} ${Number(video.framerate).toFixed(2)} fps`;
    if (audio !== undefined) return `${audio.samplerate} Hz, ${audio.channel} ch`;
    return data?.codec ?? '';
  };
  return new Table(
    'Tracks',
    [
      { title: 'Stream', value: ({ where }) => where, sort: ({ where }) => (where === 'input' ? '' : where) },
      { title: 'Track', value: ({ track }) => `${track.id} ${track.name}`, sort: ({ track }) => track.id },
      {
        title: 'Codec',
        value: (row) => media(row)?.codec ?? row.track.data?.codec ?? '',
        sort: (row) => media(row)?.codec ?? '',
      },
      { title: 'Format', width: 'short', value: format, sort: format },
      {
        title: 'Bitrate',
        numeric: true,
        value: (row) => bits(Number(media(row)?.bitrateLatest ?? 0)),
        sort: (row) => Number(media(row)?.bitrateLatest ?? 0),
      },
      {
        title: 'Encoder',
        value: (row) => encoder(media(row)),
        sort: (row) => String(media(row)?.bypass),
      },
    ],
    'It has no track yet.',
  );
}

/**
 * Encoder of a track; tracks of an input stream have none.
 * @param {TrackInfo['video'] | TrackInfo['audio']} media
 */
function encoder(media) {
  if (media === undefined) return '';
  if (media.bypass) return 'bypassed';
  const { codecModule = 'none', codecStatus = '' } = media;
  return codecModule === 'none' ? '–' : `${codecModule} ${codecStatus}`;
}

/**
 * Rows of the playlists of a stream's output streams.
 * @param {StreamInfo} stream
 * @returns {PlaylistRow[]}
 */
export function playlistsOf({ outputs }) {
  return outputs.flatMap(({ name, playlists }) => playlists.map((playlist) => ({ output: name, playlist })));
}

/**
 * A table of playlists.
 * @returns {Table<PlaylistRow>}
 */
export function playlistTable() {
  /** @param {PlaylistRow} row */
  const file = ({ playlist }) => playlist.fileName ?? '–';
  /** @param {Playlist['renditions'][number]} rendition */
  const rendition = ({ name, videoVariantName, audioVariantName }) => {
    const variants = [videoVariantName, audioVariantName].filter(Boolean).join(' + ');
    return name === undefined ? variants : `${name} (${variants})`;
  };
  /** @param {PlaylistRow} row */
  const renditions = ({ playlist }) => playlist.renditions.map(rendition).join(', ');
  return new Table(
    'Playlists',
    [
      { title: 'Stream', value: ({ output }) => output, sort: ({ output }) => output },
      { title: 'Playlist', value: ({ playlist }) => playlist.name ?? '–', sort: ({ playlist }) => playlist.name ?? '' },
      { title: 'File', value: file, sort: file },
      { title: 'Renditions', width: 'wide', value: renditions, sort: ({ playlist }) => playlist.renditions.length },
    ],
    'It has no playlist yet.',
  );
}
