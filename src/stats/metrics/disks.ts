import { gauge, type Family } from './family.ts';

/** Metrics of the disks that media are written to. @param disks how many of them are slow at present */
export function diskFamilies(disks: { readonly slow: number }): Family[] {
  return [gauge('kiln_slow_disks', 'Folders of media whose disk does not answer at present.', () => disks.slow)];
}
