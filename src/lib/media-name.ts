/** A stream, or a playlist of it, that is played as one file without end. */
export interface MediaName {
  readonly name: string;
  readonly container: 'flv' | 'ts';
}

const MEDIA = /^(.+)\.(flv|ts)$/;

/** Reads the last element of the path of a stream over HTTP: `name.flv` or `name.ts`; undefined for any other. */
export function readMediaName(element: string): MediaName | undefined {
  const [, name = '', container] = MEDIA.exec(element) ?? [];
  return container === 'flv' || container === 'ts' ? { name, container } : undefined;
}
