/**
 * What each room (a folder of src/, or one of the files beside them) may import: the rooms of the rows
 * above its own, and nothing in its own row but itself. ARCHITECTURE.md tells what the rooms are for.
 */
const ROWS: readonly (readonly string[])[] = [
  ['codecs'],
  [
    'errors.ts',
    'events.ts',
    'log.ts',
    'log-text.ts',
    'log-output.ts',
    'run-program.ts',
    'version.ts',
    'by-schema.ts',
    'media-type.ts',
    'ffmpeg.ts',
    'config',
  ],
  ['core'],
  ['containers', 'protocols'],
  ['packaging', 'access', 'stats', 'origins', 'media-child'],
  ['tasks', 'webrtc', 'alerts'],
  ['providers', 'publishers', 'transcode', 'management'],
  ['api', 'web'],
];

/** The exceptions: leaves know each other, and a codec knows nothing. */
const LEAVES = ROWS[1] ?? [];

/**
 * The room of a file, by its path from the root of the repository; undefined for a file of no room.
 * Files beside the rooms that are no leaves (main.ts, server.ts ...) compose the rest: they are all one room.
 */
export function roomOf(path: string): string | undefined {
  const [top, name, ...rest] = path.split('/');
  if (top === 'cluster') return 'cluster';
  if (top !== 'src' || name === undefined) return undefined;
  return rest.length > 0 || LEAVES.includes(name) ? name : 'composition';
}

/** Why `from` may not import `to`, or undefined when it may. Both are rooms. */
export function objection(from: string, to: string): string | undefined {
  if (from === to) return undefined;
  if (from === 'cluster') return 'cluster/ imports nothing of src/';
  if (to === 'cluster') return 'src/ sees the cluster only as #cluster';
  if (from === 'composition') return undefined;
  if (to === 'composition') return `${to} is on top: nothing imports it`;
  if (LEAVES.includes(from) && LEAVES.includes(to)) return undefined;
  const own = rowOf(from);
  const theirs = rowOf(to);
  if (own < 0) return `${from} is no room that test/lint/rooms.ts knows`;
  if (theirs < 0) return `${to} is no room that test/lint/rooms.ts knows`;
  return theirs < own ? undefined : `${from} may not know ${to}`;
}

function rowOf(room: string): number {
  return ROWS.findIndex((row) => row.includes(room));
}
