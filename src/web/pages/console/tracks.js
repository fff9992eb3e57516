import { bits } from '../common.js';
import { Table } from './parts.js';

/** The tracks of `GET streams/{stream}`, with the name of the stream that has them. */
export function tracksOf({ input, outputs }) {
  const of = (where, tracks) => tracks.map((track) => ({ where, track }));
  return [...of('input', input.tracks), ...outputs.flatMap(({ name, tracks }) => of(name, tracks))];
}

/** A table of those. */
export function trackTable() {
  const media = ({ track }) => track.video ?? track.audio;
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
        value: (row) => (media(row) === undefined ? '' : media(row).bypass ? 'bypassed' : encoder(media(row))),
        sort: (row) => String(media(row)?.bypass),
      },
    ],
    'It has no track yet.',
  );
}

/** Those of an input stream have none. */
function encoder({ codecModule = 'none', codecStatus = '' }) {
  return codecModule === 'none' ? '–' : `${codecModule} ${codecStatus}`;
}

/** The playlists of the output streams of `GET streams/{stream}`. */
export function playlistsOf({ outputs }) {
  return outputs.flatMap(({ name, playlists }) => playlists.map((playlist) => ({ output: name, playlist })));
}

/** A table of those. */
export function playlistTable() {
  const file = ({ playlist }) => playlist.fileName ?? '–';
  const rendition = ({ name, videoVariantName, audioVariantName }) => {
    const variants = [videoVariantName, audioVariantName].filter(Boolean).join(' + ');
    return name === undefined ? variants : `${name} (${variants})`;
  };
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
