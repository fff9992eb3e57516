import type { FileHandle } from 'node:fs/promises';

/** Writes bytes to a place in a file: an almost full disk takes only parts per call. @throws errors of the system */
export async function writeAll(file: FileHandle, data: Buffer, at: number): Promise<void> {
  for (let done = 0; done < data.length;) {
    const { bytesWritten } = await file.write(data, done, data.length - done, at + done);
    done += bytesWritten;
  }
}
