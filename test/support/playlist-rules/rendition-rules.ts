import { rangesOf } from './date-ranges.ts';
import { discontinuityNumbers, linesOf, type MediaPlaylist } from './media-playlist.ts';
import { childrenOf } from './master-rules.ts';
import { collect, type Finding, type Report } from './rules.ts';
import { readLines } from './tags.ts';

/** Part of a segment by which renditions of one number may begin apart: sound is cut at its own frames. */
const APART = 0.5;

/** A media playlist of a multivariant playlist. */
export interface Rendition {
  readonly uri: string;
  /** What a player had of it, in order; what is said for one moment is checked of the newest. */
  readonly playlists: readonly MediaPlaylist[];
}

/**
 * Checks the media playlists of one multivariant playlist against each other (6.2.4), for servers that number segments
 * of the same media alike.
 */
export function checkRenditions(master: string, renditions: readonly Rendition[]): Finding[] {
  return collect((report) => {
    const newest = renditions.flatMap(({ playlists }) => playlists.at(-1) ?? []);
    const iFrames: ReadonlySet<string> = new Set(
      childrenOf(master).flatMap((child) => (child.iFrames ? [fileOf(child.uri)] : [])),
    );
    checkCommon(newest, report);
    checkNumbers(renditions, report);
    checkReports(renditions, iFrames, report);
    checkRepeated(master, newest, report);
    for (const { uri, playlists } of renditions.filter((one) => iFrames.has(fileOf(one.uri))))
      if (playlists.some((playlist) => linesOf(playlist, 'EXT-X-I-FRAMES-ONLY').length === 0))
        report('not-i-frames', 0, uri);
  });
}

function checkCommon(playlists: readonly MediaPlaylist[], report: Report): void {
  const mayDiffer = (playlist: MediaPlaylist) =>
    playlist.type === 'VOD' && linesOf(playlist, 'EXT-X-I-FRAMES-ONLY').length > 0;
  const targets = playlists.filter((playlist) => !mayDiffer(playlist)).map(({ targetDuration }) => targetDuration);
  if (new Set(targets).size > 1) report('target-durations-differ', 0, targets.join());
  const types = playlists.map(({ type = 'none' }) => type);
  if (new Set(types).size > 1) report('types-differ', 0, types.join());
  const dated = playlists.map((playlist) => linesOf(playlist, 'EXT-X-PROGRAM-DATE-TIME').length > 0);
  if (new Set(dated).size > 1) report('dates-in-some', 0, dated.join());
  // pictures are not reloaded by blocking requests, and no player switches to them
  const media = playlists.filter((playlist) => linesOf(playlist, 'EXT-X-I-FRAMES-ONLY').length === 0);
  const controls = media.map((playlist) =>
    [...(linesOf(playlist, 'EXT-X-SERVER-CONTROL')[0]?.attributes ?? [])].toSorted().join(' '),
  );
  if (new Set(controls).size > 1) report('server-controls-differ', 0, controls.join(', then '));
  const ranges = playlists.map((playlist) =>
    JSON.stringify([...rangesOf(playlist)].map(([id, { attributes }]) => [id, [...attributes].toSorted()]).toSorted()),
  );
  const some = ranges.filter((range) => range !== '[]');
  if (new Set(some).size > 1) report('ranges-differ', 0, some.join(', then '));
}

interface Numbered {
  readonly number: number;
  readonly date: number | undefined;
  readonly duration: number;
}

function checkNumbers(renditions: readonly Rendition[], report: Report): void {
  const known = new Map<number, Numbered>();
  for (const { uri, playlists } of renditions) {
    for (const playlist of playlists) {
      const numbers = discontinuityNumbers(playlist);
      for (const { msn, date, duration } of playlist.segments) {
        const number = numbers.get(msn) ?? 0;
        const other = known.get(msn);
        if (other === undefined) known.set(msn, { number, date, duration });
        else {
          if (other.number !== number)
            report('discontinuities-differ', 0, `segment ${msn}: ${other.number}, ${number} in ${fileOf(uri)}`);
          // one of them may begin late or end early, where its media are missing
          const begins = Math.abs((date ?? NaN) - (other.date ?? NaN)) / 1000;
          const ends = Math.abs((date ?? NaN) / 1000 + duration - (other.date ?? NaN) / 1000 - other.duration);
          const apart = Math.min(begins, ends);
          if (apart > APART * Math.max(duration, other.duration))
            report('dates-differ', 0, `segment ${msn}: ${apart} seconds in ${fileOf(uri)}`);
        }
      }
    }
  }
}

function checkReports(renditions: readonly Rendition[], iFrames: ReadonlySet<string>, report: Report): void {
  for (const { uri, playlists } of renditions) {
    const playlist = playlists.at(-1);
    if (playlist === undefined || linesOf(playlist, 'EXT-X-PART-INF').length === 0) continue;
    const reported = linesOf(playlist, 'EXT-X-RENDITION-REPORT').map((line) =>
      fileOf(line.attributes.get('URI') ?? ''),
    );
    for (const other of renditions) {
      const isOwed = other.uri !== uri && !iFrames.has(fileOf(other.uri));
      if (isOwed && !reported.includes(fileOf(other.uri)))
        report('report-missing', 0, `${fileOf(other.uri)} in ${fileOf(uri)}`);
    }
  }
}

function checkRepeated(master: string, playlists: readonly MediaPlaylist[], report: Report): void {
  const said = readLines(master, () => {}).map(({ name }) => name);
  for (const name of ['EXT-X-INDEPENDENT-SEGMENTS', 'EXT-X-START']) {
    const again = playlists.flatMap((playlist) => linesOf(playlist, name));
    if (said.includes(name) && again[0] !== undefined) report('said-twice', again[0].at, name);
  }
}

/** Name of the file of a URI: a report may name a playlist by another path. */
function fileOf(uri: string): string {
  return new URL(uri, 'http://localhost/').pathname.split('/').at(-1) ?? uri;
}
