//! The steps of a body: a hash beside the record's, of which each field is a
//! step of one attempt. It is there only while the record is open.

use super::{RedisStore, number, scripts};
use crate::error::StoreError;
use crate::store::sql::{damaged, fixed};
use crate::store::swap::{self, Rows as _};
use crate::store::{Holder, RecordStep, Step, Written};
use crate::transition;

impl RedisStore {
    pub(super) async fn keep_step(&self, request: &RecordStep) -> Result<Written, StoreError> {
        let (holder, step) = (&request.holder, &request.step);
        let mut field = number(Some(holder.fence));
        field.push(b' ');
        field.extend(step.label.as_bytes());
        let args = [
            holder.claim.as_bytes().to_vec(),
            number(Some(holder.fence)),
            field,
            write(step),
        ];
        let mut tries = swap::Tries::new();
        while tries.again().await {
            let of = self.keys_of_steps(holder);
            let kept: Option<u8> = self.run(&scripts::STEP, &of, &args).await?;
            match kept {
                Some(0) => return Ok(Written::AlreadyDone),
                Some(_) => return Ok(Written::Done),
                None => {}
            }
            let looked = self.ends().find(&holder.id).await?;
            let held = transition::holds_steps(looked.record.as_ref(), holder);
            if held != Written::Done {
                return Ok(held);
            }
        }
        Err(swap::in_the_way())
    }

    pub(super) async fn steps_of(&self, holder: &Holder) -> Result<Option<Vec<Step>>, StoreError> {
        let args = [holder.claim.as_bytes().to_vec(), number(Some(holder.fence))];
        let of = self.keys_of_steps(holder);
        let found: Option<Vec<Vec<u8>>> = self.run(&scripts::STEPS, &of, &args).await?;
        let Some(found) = found else {
            return Ok(None);
        };
        found
            .into_iter()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    fn keys_of_steps(&self, holder: &Holder) -> [Vec<u8>; 2] {
        let keys = &self.shared.keys;
        [keys.record(&holder.id), keys.steps(&holder.id)]
    }
}

/// A step as one line, readable without this library, and what its codec wrote.
type Line = (String, Option<i32>, String, String, String);

fn write(step: &Step) -> Vec<u8> {
    let line: Line = (
        step.label.clone(),
        step.position,
        step.codec.clone(),
        hex(&step.basis),
        hex(&step.digest),
    );
    // Numbers and texts have no way to fail.
    let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
    bytes.push(b'\n');
    bytes.extend(&step.bytes);
    bytes
}

fn read(mut bytes: Vec<u8>) -> Result<Step, StoreError> {
    let unreadable = || damaged("step");
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let answer = bytes.split_off(end.ok_or_else(unreadable)? + 1);
    let (label, position, codec, basis, digest): Line =
        serde_json::from_slice(&bytes).map_err(|_| unreadable())?;
    Ok(Step {
        label,
        position,
        basis: unhex(&basis).ok_or_else(unreadable)?,
        codec,
        bytes: answer,
        digest: unhex(&digest).ok_or_else(unreadable)?,
    })
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let pairs = text.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    fixed(bytes.collect::<Option<_>>()?, "step").ok()
}
