import type { FileHandle } from 'node:fs/promises';

/** Writes bytes to a place in a file: an almost full disk takes only parts per call. @throws errors of the system */
export async function writeAll(file: FileHandle, data: Buffer, at: number): Promise<void> {
  for (let done = 0; done < data.length;) {
    const { bytesWritten } = await file.write(data, done, data.length - done, at + done);
    done += bytesWritten;
  }
}

/** Adds pieces to the end of a file, by one call where the disk takes all of them. @throws errors of the system */
export async function addAll(file: FileHandle, pieces: readonly Buffer[]): Promise<void> {
  const length = pieces.reduce((sum, { length: more }) => sum + more, 0);
  const { bytesWritten } = length === 0 ? { bytesWritten: 0 } : await file.writev(pieces);
  // such as on a disk that is full, which then says so
  if (bytesWritten < length) await file.writeFile(Buffer.concat(pieces).subarray(bytesWritten));
}
