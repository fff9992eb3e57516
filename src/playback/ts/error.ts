import { ClipError } from '../clip/error.ts';

export function damagedTs(message: string): ClipError {
  return new ClipError('damaged', `the MPEG-TS file is damaged: ${message}`);
}
