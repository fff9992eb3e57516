/**
 * What each room may import: the rooms of the rows above its own, and nothing in its own row but itself. A room is a folder, or a
 * file beside them, of a house. ARCHITECTURE.md tells what the rooms are for.
 */
const HOUSES: readonly House[] = [
  {
    folder: 'src/publishers/hls',
    rows: [
      ['master'],
      ['answer', 'steering'],
      ['blocking-reload'],
      ['rewind'],
      ['package'],
      ['dump', 'http', 'sessions'],
      ['local'],
      ['ll', 'remote', 'ts'],
      ['publisher.ts'],
    ],
  },
  {
    folder: 'src/channels',
    rows: [
      ['sources'],
      ['multiplex', 'scheduled'],
      ['files', 'standby'],
      ['channel-kind.ts'],
      ['channel-name.ts', 'guides.ts', 'loops.ts'],
      ['channel-graph.ts', 'schedule-alerts.ts'],
      ['channels.ts'],
    ],
  },
  {
    folder: 'src',
    rows: [
      ['codecs'],
      ['errors.ts', 'version.ts', 'log', 'lib'],
      ['config'],
      ['ffmpeg.ts', 'core', 'peers'],
      ['containers', 'protocols', 'directory', 'origin-map', 'stats', 'control-server', 'quality'],
      ['tls', 'packaging', 'media-child', 'access', 'tasks', 'events-from-files'],
      ['transcode', 'webrtc', 'rtsp', 'alerts', 'recording', 'management'],
      ['providers', 'publishers', 'pushing'],
      ['channels', 'playback', 'relay', 'web'],
      ['api'],
      ['server', 'cli'],
      ['main.ts'],
    ],
    apart: [['protocols', 'config']],
  },
];

interface House {
  /** By its path from the root of the repository. */
  readonly folder: string;
  readonly rows: readonly (readonly string[])[];
  /** Rooms that may not know others, though those are in a row above. */
  readonly apart?: readonly (readonly [room: string, other: string])[];
}

/** Why a file may not import another, or undefined when it may. Both by their paths from the root of the repository. */
export function objection(from: string, to: string): string | undefined {
  if (isCluster(from) && isSource(to)) return 'cluster/ imports nothing of src/';
  if (isSource(from) && isCluster(to)) return 'src/ sees the cluster only as #cluster';
  const house = HOUSES.find(({ folder }) => [from, to].every((path) => path.startsWith(`${folder}/`)));
  if (house === undefined) return undefined;
  const own = roomIn(house, from);
  const theirs = roomIn(house, to);
  if (own.name === theirs.name) return undefined;
  for (const { name, row } of [own, theirs]) {
    if (row < 0) return `${name} is no room of ${house.folder} that test/lint/rooms.ts knows`;
  }
  const isApart = house.apart?.some(([room, other]) => room === own.name && other === theirs.name) ?? false;
  return theirs.row < own.row && !isApart ? undefined : `${own.name} may not know ${theirs.name}`;
}

function roomIn({ folder, rows }: House, path: string): { readonly name: string; readonly row: number } {
  const [name = ''] = path.slice(folder.length + 1).split('/');
  return { name, row: rows.findIndex((row) => row.includes(name)) };
}

function isCluster(path: string): boolean {
  return path.startsWith('cluster/');
}

function isSource(path: string): boolean {
  return path.startsWith('src/');
}
