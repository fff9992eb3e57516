import type { FileNames } from '../../packaging/playlist.ts';

const SUFFIX = 'llhls';

/** File names of one track (facts/05-hls.md, LL-HLS names), each with `query` behind it. */
export function fileNames(trackId: number, type: 'video' | 'audio', streamKey: string, query: string): FileNames {
  const tail = `${type}_${streamKey}`;
  return {
    chunklist: () => `chunklist_${trackId}_${tail}_${SUFFIX}.m3u8${query}`,
    init: (version) => `init_${trackId}_${tail}${version > 0 ? `_v${version}` : ''}_${SUFFIX}.m4s${query}`,
    segment: (msn) => `seg_${trackId}_${msn}_${tail}_${SUFFIX}.m4s${query}`,
    part: (msn, index) => `part_${trackId}_${msn}_${index}_${tail}_${SUFFIX}.m4s${query}`,
  };
}

/** A file's name without the query that it has in playlists. */
export function pathOf(name: string): string {
  const query = name.indexOf('?');
  return query < 0 ? name : name.slice(0, query);
}
